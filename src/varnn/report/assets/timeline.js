// One chart of a report: truth, predictions and intervals of a series over time, and errors below; zoomed, panned, read.
/* global uPlot */
import { NONE, axisNumbers, count, decimalFormat, known, minus } from './numbers.js';
import { h, say } from './dom.js';
import { gestures } from './gestures.js';
import { axisDates, plainTime } from './times.js';
import { placeOf, thin } from './thin.js';

const SHEET = 680; // pixels across paper
const SPAN = 6; // pixels of an overview that share a span
const FAINT = 0.45; // lines of an overview, which would be a wall else, and hide each other
const ERRORS_HEIGHT = 124;
const BY_KEYS = 'Keys: ← → + − 0, shift ← → row by row.';
const BY_MOUSE = `Drag to zoom, shift and drag to pan, double click for all; once clicked, the wheel zooms. ${BY_KEYS}`;
const BY_TOUCH = 'Drag sideways to pan, pinch to zoom, tap to read.';
let charts = 0;

/** The range of `columns` at `rows`: the first one shows whole, others may reach out of the picture. */
function valueRange(columns, rows) {
  let [low, high] = [Infinity, -Infinity];
  let edges = [-Infinity, Infinity];
  for (const values of columns) {
    for (const row of rows) {
      const value = values[row];
      if (value === null) continue;
      if (value < low) low = Math.max(value, edges[0]);
      if (value > high) high = Math.min(value, edges[1]);
    }
    const spare = 0.75 * (high - low);
    if (spare > 0 && edges[0] === -Infinity) edges = [low - spare, high + spare];
  }
  if (low > high) return [0, 1];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.01 || 1;
  return [low - margin, high + margin];
}

export class Timeline {
  constructor(figure, { unit, timed, errors, stacked }, series) {
    Object.assign(this, { figure, unit, timed, errors, stacked, series });
    this.hidden = new Set(); // names of lines that are switched off
    this.plots = [];
    charts += 1;
    this.key = `chart ${charts}`; // of what both panels share
    this.tools = h('div', { class: 'tools' });
    this.readout = h('div', { class: 'keys readout' });
    this.upper = h('div');
    this.below = h('h3', { hidden: true });
    this.lower = h('div');
    this.status = h('p', { class: 'unseen', role: 'status' });
    const name = figure.querySelector('svg').getAttribute('aria-label');
    this.frame = h('div', {
      class: 'frame', tabindex: 0, role: 'group', 'aria-roledescription': 'chart', 'aria-label': `${name} ${BY_KEYS}`,
    }, this.upper, this.below, this.lower);
    const moving = h('div', { class: 'moving' }, this.tools, this.readout, this.frame, this.status,
      // To say it once on a page is enough.
      charts === 1 && h('p', { class: 'hint', 'aria-hidden': 'true' }, h('span', { class: 'mouse' }, BY_MOUSE), h('span', { class: 'touch' }, BY_TOUCH)));
    figure.prepend(moving);
    figure.classList.add('live');
    this.hands = gestures(this.frame, {
      range: () => this.range,
      bounds: () => this.bounds,
      pinned: () => false,
      move: (min, max) => this.look([min, max]),
      reset: () => this.look(this.bounds),
    });
    this.#readByKeys();
    this.#zoomByWheel();
    new ResizeObserver(() => this.#fit()).observe(this.frame);
    this.pick(0);
  }

  /** Show a series, from its first view or as a whole. */
  pick(place) {
    this.place = place;
    this.shown = this.series[place];
    const { x, columns, views } = this.shown;
    this.bounds = x.length > 1 ? [x[0], x.at(-1)] : [x[0] - 1, x[0] + 1];
    this.range = views.length ? [...views[0].range] : this.bounds;
    this.first = this.range;
    const named = [...columns.keys()];
    const after = (start) => named.filter((one) => one.startsWith(start)).map((one) => one.slice(start.length));
    this.truth = columns.get('truth') ?? null;
    this.lines = after('line ').map((name, index) => ({ name, values: columns.get(`line ${name}`), colour: `--line-${index + 1}` }));
    this.bands = after('lower ').map((name) => ({ name, lower: columns.get(`lower ${name}`), upper: columns.get(`upper ${name}`) }));
    const [line] = this.lines;
    const missed = (value, row) => (value === null || line.values[row] === null ? null : value - line.values[row]);
    this.missed = this.errors && this.truth && line ? this.truth.map(missed) : null;
    this.below.hidden = !this.missed;
    say(this.below, this.missed ? `Errors: truth less ${line.name}` : '');
    this.#arrange();
    this.rebuild();
  }

  /** Show what lies between two places, as far as there are rows. */
  look([min, max]) {
    const [low, high] = this.bounds;
    const least = Math.min(3 * ((high - low) / this.shown.x.length), high - low);
    const wide = Math.min(Math.max(max - min, least), high - low);
    const from = Math.min(Math.max((min + max - wide) / 2, low), high - wide);
    this.range = [from, from + wide];
    this.#draw();
  }

  rebuild() {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
    this.rows = [];
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.wide = this.#width();
    const main = this.#options(colour, innerWidth < 600 ? 240 : 320, () => this.heights);
    const bare = { points: { show: false } };
    if (this.stacked) {
      this.lines.forEach((line, index) => {
        const fill = colour(line.colour);
        main.series.push({ ...bare, width: 0, fill: index ? undefined : fill });
        if (index) main.bands.push({ series: [index + 1, index], fill });
      });
    } else {
      for (const band of this.bands) {
        const at = main.series.length;
        main.series.push({ ...bare, width: 0, show: !this.hidden.has(band.name) }, { ...bare, width: 0, show: !this.hidden.has(band.name) });
        main.bands.push({ series: [at, at + 1], fill: colour('--band') });
      }
      // What is drawn last lies on top: the line that matters, and truth, which never hides behind it.
      for (const line of this.lines.toReversed()) {
        const ink = colour(line.colour);
        main.series.push({ stroke: ink, width: line === this.lines[0] ? 1.6 : 1.1, show: !this.hidden.has(line.name), points: this.#dots(ink) });
      }
      if (this.truth) {
        const ink = colour('--truth');
        main.series.push({ stroke: ink, width: 1, show: !this.hidden.has('truth'), points: this.#dots(ink) });
      }
    }
    this.plots.push(new uPlot(main, main.series.map(() => []), this.upper));
    if (this.missed) {
      const below = this.#options(colour, ERRORS_HEIGHT, () => this.reach, 20);
      below.series.push({ stroke: colour('--error'), width: 1, points: this.#dots(colour('--error')) });
      this.plots.push(new uPlot(below, [[], []], this.lower));
    }
    this.#draw();
  }

  /** Dots where rows stand far apart: a row alone between two gaps is no line. */
  #dots(ink) { return { show: () => this.rows.length < this.wide / 14, size: 4, fill: ink, stroke: ink }; }

  #options(colour, height, range, space = 34) {
    const axis = {
      stroke: colour('--soft'), font: '12px system-ui, sans-serif', grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line'), width: 1, size: 4 },
      values: (plot, splits, place, room, step) => axisNumbers(splits, step),
    };
    const across = { ...axis, space: 74, size: this.timed ? 40 : 28 };
    if (this.timed) across.values = (plot, splits, place, room, step) => axisDates(splits, step);
    return {
      width: this.wide,
      height,
      series: [{}],
      bands: [],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: { x: { time: this.timed, auto: false, range: () => this.range }, y: { range } },
      axes: [across, { ...axis, size: 56, space }],
      legend: { show: false },
      padding: [8, 24, 0, 0],
      cursor: {
        // Moves are shared by both panels; presses are not, or each drag would zoom twice.
        sync: { key: this.key, filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
        drag: { x: true, y: false, setScale: false },
        bind: this.hands.bind,
        y: false,
        points: { size: 6 },
      },
      hooks: {
        ready: [(plot) => this.hands.attach(plot)],
        setSelect: [(plot) => {
          const { left, width } = plot.select;
          if (width > 4) this.look([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]);
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [() => this.#read()],
        drawAxes: [(plot) => this.#mark(plot, colour('--event'))],
      },
    };
  }

  #width() {
    const across = this.frame.clientWidth || 600;
    return document.documentElement.classList.contains('printing') ? Math.min(across, SHEET) : across;
  }

  #fit() {
    if (!this.frame.clientWidth || this.wide === this.#width()) return;
    this.wide = this.#width();
    for (const plot of this.plots) plot.setSize({ width: this.wide, height: plot.height });
    this.#draw();
  }

  #draw() {
    const { x } = this.shown;
    const [min, max] = this.range;
    const inside = [placeOf(x, min), placeOf(x, max + 1e-9) - 1];
    // One row more at either end, so that lines go on to the edges.
    const ends = [Math.max(inside[0] - 1, 0), Math.min(inside[1] + 1, x.length - 1)];
    const drawn = this.lines.filter((line) => !this.hidden.has(line.name)).map((line) => line.values);
    const leading = [...(this.truth && !this.hidden.has('truth') ? [this.truth] : []), ...drawn].slice(0, 2);
    const fallback = leading.length ? leading : [this.truth ?? this.lines[0]?.values ?? this.bands[0].lower];
    // The largest errors must not be lost, either.
    this.rows = thin(this.missed ? [...fallback, this.missed] : fallback, ...ends, Math.max(Math.floor(this.wide / SPAN), 20));
    const within = this.rows.filter((row) => row >= inside[0] && row <= inside[1]);
    const bounds = this.bands.filter((band) => !this.hidden.has(band.name)).flatMap((band) => [band.lower, band.upper]);
    this.heights = this.stacked ? [0, 1] : valueRange([...(leading.length ? [leading[0]] : []), ...drawn, ...bounds], within);
    const pick = (values) => this.rows.map((row) => values[row]);
    const places = pick(x);
    const data = [[places]];
    if (this.stacked) {
      const sums = this.rows.map(() => 0);
      for (const line of this.lines) data[0].push(sums.map((sum, at) => { sums[at] = sum + (line.values[this.rows[at]] ?? 0); return sums[at]; }));
    } else {
      for (const band of this.bands) data[0].push(pick(band.upper), pick(band.lower));
      for (const line of this.lines.toReversed()) data[0].push(pick(line.values));
      if (this.truth) data[0].push(pick(this.truth));
    }
    if (this.missed) {
      const missed = pick(this.missed);
      data.push([places, missed]);
      // One wild error, as a first one often is, must not flatten all others: it is cut off.
      const sizes = within.map((row) => this.missed[row]).filter(known).map(Math.abs);
      const usual = Math.sqrt(sizes.reduce((sum, one) => sum + one ** 2, 0) / sizes.length);
      const most = Math.min(sizes.reduce((one, two) => Math.max(one, two), 0) * 1.08, 8 * usual) || 1;
      this.reach = [-most, most];
    }
    const crowded = this.rows.length < ends[1] - ends[0] + 1 && !this.stacked;
    this.plots.forEach((plot, at) => plot.batch(() => {
      for (const line of plot.series) line.alpha = crowded ? FAINT : 1;
      plot.setData(data[at], false);
      plot.setScale('x', { min, max });
    }));
    const same = (one, two) => Math.abs(one[0] - two[0]) + Math.abs(one[1] - two[1]) < 1e-6 * (this.bounds[1] - this.bounds[0]);
    for (const { button, range } of this.buttons) button.setAttribute('aria-pressed', same(range, this.range));
    this.figure.classList.toggle('changed', this.place > 0 || this.hidden.size > 0 || !same(this.first, this.range));
    this.#read();
  }

  /** Changes as lines through the chart, each shaded from where it began, with its name and date where there is room. */
  #mark(plot, ink) {
    const { ctx: pen, bbox: { left, top, width, height } } = plot;
    const ratio = uPlot.pxRatio;
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = ratio;
    pen.font = `${11 * ratio}px system-ui, sans-serif`;
    pen.textBaseline = 'top';
    pen.textAlign = 'left'; // the axes left another
    let free = -Infinity; // labels never lie on each other
    for (const mark of this.#marked()) {
      const [began, x] = [mark.began, mark.noticed].map((one) => Math.round(plot.valToPos(one, 'x', true)));
      pen.globalAlpha = 0.12;
      pen.fillRect(began, top, x - began, height);
      pen.globalAlpha = 1;
      pen.setLineDash([4 * ratio, 3 * ratio]);
      pen.beginPath();
      pen.moveTo(x, top);
      pen.lineTo(x, top + height);
      pen.stroke();
      if (plot !== this.plots[0] && this.plots.length) continue;
      const words = `${mark.kind} ${this.#place(mark.noticed)}`;
      const wide = pen.measureText(words).width;
      const start = x + wide + 6 * ratio > left + width ? x - wide - 4 * ratio : x + 4 * ratio;
      if (start < Math.max(free, left)) continue;
      pen.fillText(words, start, top);
      free = start + wide + 6 * ratio;
    }
    pen.restore();
  }

  #marked() { return this.shown.marks.filter(({ began, noticed }) => noticed >= this.range[0] && began <= this.range[1]); }

  #place(at) { return this.timed ? plainTime(at) : `row ${count(at)}`; }

  #value(value) {
    if (!known(value)) return NONE;
    return minus(Math.abs(value) >= 1e9 ? decimalFormat(4, 'e').format(value) : decimalFormat(this.stacked ? 2 : Math.min(this.shown.digits, 8)).format(value));
  }

  /** The parts around the drawing: what can be picked, and what names and reads the lines. */
  #arrange() {
    const { views } = this.shown;
    this.tools.replaceChildren();
    if (this.series.length > 1) {
      const options = this.series.map(({ name }, at) => h('option', { value: at }, name || `series ${at + 1}`));
      const select = h('select', { onchange: () => this.pick(Number(select.value)) }, ...options);
      select.value = String(this.place);
      this.tools.append(h('label', {}, 'Series ', select));
    }
    this.buttons = [{ title: this.timed ? 'All' : 'All rows', range: this.bounds }, ...views].map(({ title, range }) => {
      const button = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => this.look(range) }, title);
      this.tools.append(button);
      return { button, range };
    });
    this.when = h('b', { class: 'when' });
    this.values = [];
    const key = (name, colour, kind, at) => {
      const swatch = h('i', { class: kind });
      if (colour) swatch.style.setProperty('color', `var(${colour})`);
      const value = h('b');
      const button = h('button', { type: 'button', class: 'key', 'aria-pressed': String(!this.hidden.has(name)), onclick: () => this.#toggle(name, button) },
        swatch, `${name} `, value);
      this.values.push({ value, at });
      return button;
    };
    const keys = [
      ...(this.truth ? [key('truth', null, 'truth', (row) => this.#value(this.truth[row]))] : []),
      ...this.lines.map((line) => key(line.name, line.colour, 'line', (row) => this.#value(line.values[row]))),
      ...this.bands.map((band) => key(band.name, null, 'band', (row) => `${this.#value(band.lower[row])} to ${this.#value(band.upper[row])}`)),
    ];
    this.event = h('span', { class: 'event' });
    const picked = this.series.length > 1 && h('span', { class: 'on-paper' }, `${this.shown.name}: `); // where there is no picker
    this.readout.classList.toggle('marked', this.shown.marks.length > 0); // room for their names, so that nothing jumps
    this.readout.replaceChildren(h('span', {}, picked, this.unit ? `${this.unit}, ` : '', this.when), ...keys, this.event);
  }

  #toggle(name, button) {
    const shown = this.hidden.delete(name);
    if (!shown) this.hidden.add(name);
    button.setAttribute('aria-pressed', String(shown));
    this.rebuild();
  }

  /** The row under the cursor in figures; without one, the last row in the picture. */
  #read() {
    const [plot] = this.plots;
    if (!plot || !this.rows.length) return;
    const pointed = plot.cursor.idx ?? null;
    const last = this.rows.findLast((row) => this.shown.x[row] <= this.range[1]) ?? this.rows[0];
    const row = pointed === null ? last : this.rows[pointed];
    const at = this.shown.x[row];
    say(this.when, this.#place(at));
    for (const { value, at: words } of this.values) say(value, words(row));
    const near = pointed === null ? undefined : this.#marked().find(({ noticed }) => Math.abs(plot.valToPos(noticed, 'x') - plot.cursor.left) < 6);
    say(this.event, near ? this.#words(near) : '');
  }

  #words({ kind, began, noticed }) {
    return `${kind}, noticed ${this.#place(noticed)}${began < noticed ? `, begun ${this.#place(began)}` : ''}`;
  }

  /** Shift and an arrow: the row beside the one that is read. */
  #readByKeys() {
    this.frame.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!event.shiftKey || !by) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.#step(by);
    }, { capture: true });
  }

  /** In a chart that was touched the wheel zooms, not pans; a page that is only scrolled past must scroll. */
  #zoomByWheel() {
    this.frame.addEventListener('wheel', (event) => {
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (event.ctrlKey || sideways || document.activeElement !== this.frame || !event.target.closest('.u-over')) return;
      event.preventDefault();
      event.stopPropagation();
      const { left, width } = event.target.closest('.u-over').getBoundingClientRect();
      this.hands.zoom(Math.exp(event.deltaY / 500), Math.min(Math.max((event.clientX - left) / width, 0), 1));
    }, { capture: true, passive: false });
  }

  /** Read the next row, and say it to who does not see it. */
  #step(by) {
    const [plot] = this.plots;
    const within = this.rows.map((row, at) => at).filter((at) => this.shown.x[this.rows[at]] >= this.range[0] && this.shown.x[this.rows[at]] <= this.range[1]);
    const now = plot.cursor.idx ?? within[Math.floor(within.length / 2)] - by;
    const at = Math.min(Math.max(now + by, within[0]), within.at(-1));
    plot.setCursor({ left: plot.valToPos(this.shown.x[this.rows[at]], 'x'), top: 10 });
    say(this.status, this.readout.textContent);
  }
}
