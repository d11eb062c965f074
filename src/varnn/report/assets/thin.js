// Many rows in few pixels: the lowest and the highest of each span, so that no peak is lost and lines stay thin.

/** Rows to draw from `from` to `to`: all, or of each span those where a column is lowest and highest. */
export function thin(columns, from, to, spans) {
  const rows = [];
  const count = to - from + 1;
  if (count <= 2 * columns.length * spans) {
    for (let row = from; row <= to; row += 1) rows.push(row);
    return rows;
  }
  for (let span = 0; span < spans; span += 1) {
    const first = from + Math.floor((span * count) / spans);
    const last = from + Math.floor(((span + 1) * count) / spans) - 1;
    const kept = new Set(span === 0 ? [from] : span === spans - 1 ? [to] : []);
    for (const values of columns) {
      let [low, high] = [first, first]; // a span without any value keeps a row: the gap must show
      for (let row = first; row <= last; row += 1) {
        if (values[row] === null) continue;
        if (values[low] === null || values[row] < values[low]) low = row;
        if (values[high] === null || values[row] > values[high]) high = row;
      }
      kept.add(low).add(high);
    }
    rows.push(...[...kept].sort((one, two) => one - two));
  }
  // A gap stays one: the first row of each stretch without any value, unless there are too many.
  const empty = (row) => columns.every((values) => values[row] === null);
  const gaps = [];
  for (let row = from + 1; row <= to; row += 1) if (empty(row) && !empty(row - 1)) gaps.push(row);
  if (!gaps.length || gaps.length > spans) return rows;
  return [...new Set([...rows, ...gaps])].sort((one, two) => one - two);
}

/** The first place in ascending `values` that is not below `limit`. */
export function placeOf(values, limit) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1; else high = middle;
  }
  return low;
}
