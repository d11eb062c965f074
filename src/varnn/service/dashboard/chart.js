// Truth, prediction and band over innovations: two uPlot charts that share their axis.
/* global uPlot */
import { h, say } from './dom.js';
import { EVENT_MARKS, axisNumbers, axisTimes, count, eventWords, fullTime, number, percent } from './format.js';
import { gestures } from './gestures.js';

const CHALLENGERS = ['--challenger-1', '--challenger-2', '--challenger-3'];
const LOWER_HEIGHT = 130;

/** The range of the values that matter: a band may reach out of the picture, truth and prediction may not. */
function valueRange({ y, prediction, lower, upper }, others, from, to) {
  let low = Infinity;
  let high = -Infinity;
  const widen = (columns, least = -Infinity, most = Infinity) => {
    for (const values of columns) {
      for (let place = from; place <= to; place += 1) {
        const value = values[place];
        if (typeof value !== 'number') continue;
        if (value < low) low = Math.max(value, least);
        if (value > high) high = Math.min(value, most);
      }
    }
  };
  widen([y, prediction, ...others]);
  const spare = 0.75 * (high - low) || Infinity;
  widen([lower, upper], low - spare, high + spare);
  if (low > high) return [0, 1];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.01 || 1;
  return [low - margin, high + margin];
}

export class Chart {
  /** `on` has: move(min, max), reset(), pinned(), bounds(). */
  constructor(history, { level, on }) {
    Object.assign(this, { history, level, on });
    this.range = [0, 1];
    this.byRow = false; // the axis: numbers of rows, or time
    this.events = [];
    this.names = []; // challengers there are
    this.shown = new Set(); // those that are switched on
    this.scale = null; // the usual size of an innovation, for rounding
    this.plots = [];
    this.readout = h('p', { class: 'readout', 'aria-hidden': 'true' });
    this.upper = h('div', { class: 'plot' });
    this.lower = h('div', { class: 'plot' });
    this.frame = h('div', {
      class: 'frame', tabindex: 0, role: 'group', 'aria-roledescription': 'chart', 'aria-describedby': 'chart-help',
    }, this.upper, h('h3', {}, 'Innovations', h('span', { class: 'quiet' }, ' truth less prediction')), this.lower);
    this.hands = gestures(this.frame, { ...on, range: () => this.range });
    this.resizing = new ResizeObserver(() => this.#fit());
    this.resizing.observe(this.frame);
    this.retheme = () => this.#build();
    addEventListener('themechange', this.retheme);
  }

  destroy() {
    this.resizing.disconnect();
    removeEventListener('themechange', this.retheme);
    this.#clear();
  }

  /** Draw what the history holds now, between the two ends of `range`. */
  draw(range) {
    this.range = range;
    const names = Object.keys(this.history.challengers);
    if (names.join('\n') !== this.names.join('\n') || this.byRow !== this.builtByRow || !this.plots.length) {
      this.names = names;
      this.#build();
      return;
    }
    const data = this.#data();
    this.plots.forEach((plot, place) => plot.setData(data[place], false));
    this.look(range);
  }

  /** Only the ends changed. */
  look(range) {
    this.range = range;
    const [min, max] = range;
    for (const plot of this.plots) plot.setScale('x', { min, max });
    this.#read();
  }

  toggle(name, on) {
    if (on) this.shown.add(name); else this.shown.delete(name);
    this.plots[0]?.setSeries(3 + this.names.indexOf(name), { show: on });
    this.look(this.range);
  }

  colourOf(name) { return CHALLENGERS[this.names.indexOf(name) % CHALLENGERS.length]; }

  /** Places of the first and the last row in the picture. */
  #inSight() {
    const axis = this.byRow ? 'row' : 'at';
    return [this.history.placeOf(axis, this.range[0]), this.history.placeOf(axis, this.range[1] + 1e-6) - 1];
  }

  #x(event) { return this.byRow ? event.row : event.at; }

  #marked() { return this.events.filter((one) => this.#x(one) >= this.range[0] && this.#x(one) <= this.range[1]); }

  #data() {
    const { columns, challengers } = this.history;
    const inside = [];
    const outside = [];
    for (let place = 0; place < this.history.length; place += 1) {
      const innovation = this.history.innovation(place);
      const out = this.history.outside(place) === true;
      inside.push(out ? null : innovation);
      outside.push(out ? innovation : null);
    }
    const x = this.byRow ? columns.row : columns.at;
    // What is drawn last lies on top: truth, which must never hide behind a prediction.
    return [
      [x, columns.upper, columns.lower, ...this.names.map((name) => challengers[name]), columns.prediction, columns.y],
      [x, inside, outside],
    ];
  }

  #clear() {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }

  #fit() {
    const width = this.frame.clientWidth;
    if (!width || !this.plots.length || this.plots[0].width === width) return;
    this.plots.forEach((plot, place) => plot.setSize({ width, height: place ? LOWER_HEIGHT : this.#height() }));
  }

  #height() { return window.innerWidth < 600 ? 260 : 340; }

  #build() {
    this.#clear();
    this.builtByRow = this.byRow;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const [above, below] = this.#data();
    const bare = { show: false };
    const axis = {
      stroke: colour('--soft'), font: '11px system-ui, sans-serif', grid: { stroke: colour('--line'), width: 1 },
      ticks: { stroke: colour('--line'), width: 1, size: 4 },
      values: (plot, splits, place, space, step) => axisNumbers(splits, step),
    };
    const across = { ...axis, space: 72, size: 36 };
    if (!this.byRow) across.values = (plot, splits, place, space, step) => axisTimes(splits, step);
    const options = (height, y, space, series, more = {}) => ({
      width: this.frame.clientWidth || 600,
      height,
      series: [{}, ...series],
      scales: { x: { time: !this.byRow, auto: false, range: () => this.range }, y: { range: y } },
      // Both have the same room at the left, so that their axes stand below each other.
      axes: [across, { ...axis, size: 58, space }],
      legend: { show: false },
      padding: [8, 22, 0, 0],
      cursor: {
        // Moves are shared by both charts; presses are not, or each drag would zoom twice.
        sync: { key: 'varnn', filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
        drag: { x: true, y: false, setScale: false },
        bind: this.hands.bind,
        y: false,
        points: { size: 7, show: height > LOWER_HEIGHT },
      },
      hooks: {
        ready: [(plot) => this.hands.attach(plot)],
        setSelect: [(plot) => {
          const { left, width } = plot.select;
          if (width > 4) this.on.move(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [() => this.#read()],
        drawAxes: [(plot) => this.#mark(plot, colour('--event'))],
      },
      ...more,
    });
    const inView = () => valueRange(this.history.columns,
      this.names.filter((name) => this.shown.has(name)).map((name) => this.history.challengers[name]), ...this.#inSight());
    const challengers = this.names.map((name) => ({
      points: bare, width: 1.5, dash: [5, 4], show: this.shown.has(name), stroke: colour(this.colourOf(name)),
    }));
    const truth = colour('--truth');
    const around = () => {
      // One wild innovation, as a first one often is, must not flatten all others: it is cut off.
      const sizes = this.history.innovations(...this.#inSight()).map(Math.abs);
      const usual = Math.sqrt(sizes.reduce((sum, one) => sum + one ** 2, 0) / sizes.length);
      const most = Math.min(sizes.reduce((one, two) => Math.max(one, two), 0) * 1.08, 8 * usual) || 1;
      return [-most, most];
    };
    const bars = (fill) => ({ stroke: fill, fill, width: 0, points: bare, paths: uPlot.paths.bars({ size: [0.6, 6, 1] }) });
    this.plots = [
      new uPlot(options(this.#height(), inView, 34, [
        { points: bare, width: 0 },
        { points: bare, width: 0 },
        ...challengers,
        { stroke: colour('--prediction'), width: 4, points: bare },
        { stroke: truth, width: 1.4, points: { size: 5, fill: truth, stroke: truth } },
      ], { bands: [{ series: [1, 2], fill: colour('--band') }] }), above, this.upper),
      new uPlot(options(LOWER_HEIGHT, around, 20, [bars(colour('--innovation')), bars(colour('--bad'))]), below, this.lower),
    ];
    this.look(this.range);
  }

  /** Events as lines through the chart, each with the glyph it has in the list. */
  #mark(plot, ink) {
    const { ctx: pen, bbox: { top, height } } = plot;
    const ratio = uPlot.pxRatio;
    pen.save();
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = ratio;
    pen.font = `${11 * ratio}px system-ui, sans-serif`;
    pen.textAlign = 'center';
    pen.textBaseline = 'top';
    pen.setLineDash([3 * ratio, 3 * ratio]);
    for (const event of this.#marked()) {
      const x = Math.round(plot.valToPos(this.#x(event), 'x', true));
      pen.beginPath();
      pen.moveTo(x, top + 13 * ratio);
      pen.lineTo(x, top + height);
      pen.stroke();
      pen.fillText(EVENT_MARKS[event.kind] ?? '▼', x, top);
    }
    pen.restore();
  }

  /** The row under the cursor in words; without one, the last row in the picture. */
  #read() {
    const [plot] = this.plots;
    if (!plot) return;
    const pointed = plot.cursor.idx ?? null;
    const at = pointed ?? this.#inSight()[1];
    const { columns, challengers } = this.history;
    if (!(at >= 0 && at < this.history.length)) {
      say(this.readout, '');
      return;
    }
    const words = (values) => number(values[at], this.scale);
    const parts = [`${pointed === null ? 'Last: ' : ''}${fullTime(columns.at[at])}, row ${count(columns.row[at])}`,
      `truth ${words(columns.y)}`, `prediction ${words(columns.prediction)}`];
    if (typeof columns.lower[at] === 'number') parts.push(`${percent(this.level)} from ${words(columns.lower)} to ${words(columns.upper)}`);
    for (const name of this.shown) if (challengers[name]) parts.push(`${name} ${words(challengers[name])}`);
    const near = pointed !== null && this.#marked().find(
      (event) => Math.abs(plot.valToPos(this.#x(event), 'x') - plot.cursor.left) < 6);
    if (near) parts.push(eventWords(near));
    say(this.readout, parts.join(' · '));
  }

  /** What the picture shows, for who does not see it. */
  describe(name) {
    const [from, to] = this.#inSight();
    if (to < from) return `Chart of ${name}: no rows in this range.`;
    const innovations = this.history.innovations(from, to);
    const squares = innovations.reduce((sum, one) => sum + one ** 2, 0);
    let [judged, held] = [0, 0];
    for (let place = from; place <= to; place += 1) {
      const outside = this.history.outside(place);
      if (outside !== null) { judged += 1; held += outside ? 0 : 1; }
    }
    const { at, prediction } = this.history.columns;
    return `${[
      `Chart of ${name}, truth and prediction from ${fullTime(at[from])} to ${fullTime(at[to])}`,
      `${count(to - from + 1)} points`,
      `last prediction ${number(prediction[to], this.scale)}`,
      ...(innovations.length ? [`RMSE ${number(Math.sqrt(squares / innovations.length))}`] : []),
      ...(judged ? [`${percent(held / judged)} of the labels inside the band`] : []),
      `events: ${count(this.#marked().length)}`,
    ].join(', ')}.`;
  }
}
