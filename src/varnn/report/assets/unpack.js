// What `_packing.py` packed, taken apart again: for each series its axis and its columns, null where a value is missing.

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function unpack({ series, data, timed }) {
  const bytes = await inflate(data);
  let at = 0;
  /** The next column: numbers of steps, each coded as its difference from the one before; 0 says that it is missing. */
  const column = (rows) => {
    const values = new Array(rows);
    let last = 0;
    for (let row = 0; row < rows; row += 1) {
      let [code, weight, byte] = [0, 1, 0];
      do { // not by bits, of which a number has only 32
        byte = bytes[at];
        at += 1;
        code += (byte & 127) * weight;
        weight *= 128;
      } while (byte > 127);
      if (code > 0) last += code % 2 ? (code - 1) / 2 : -code / 2;
      values[row] = code > 0 ? last : null;
    }
    return values;
  };
  const onAxis = (whole) => (timed ? whole / 1e6 : whole); // seconds since 1970, or numbers of rows
  return series.map(({ name, rows, power, columns, marks, views }) => {
    let place = 0;
    const x = column(rows).map((step) => { place += step; return onAxis(place); });
    const value = (steps) => (steps === null ? null : power < 0 ? steps / 10 ** -power : steps * 10 ** power);
    let base = null; // bounds are told from the first line
    const read = new Map(columns.map((one) => {
      const steps = column(rows);
      if (base !== null && /^(lower|upper) /.test(one)) return [one, steps.map((by, row) => value(by === null ? null : base[row] + by))];
      if (base === null && one.startsWith('line ')) base = steps;
      return [one, steps.map(value)];
    }));
    return {
      name,
      x,
      digits: Math.max(0, -power),
      columns: read,
      marks: marks.map(([kind, began, noticed]) => ({ kind, began: onAxis(began), noticed: onAxis(noticed) })),
      views: views.map(([title, first, last]) => ({ title, range: [onAxis(first), onAxis(last)] })),
    };
  });
}
