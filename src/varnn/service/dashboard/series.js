// One series: truth, prediction and band, live; innovations, experts, events and the last rows.
import { ask, hashes, nameOfKey, paths } from './api.js';
import { Chart } from './chart.js';
import { batched, h, notice, say, settled } from './dom.js';
import { count, fromField, toField, zoneWords } from './format.js';
import { History } from './history.js';
import { every, follow } from './live.js';
import { LastRows, eventList, scores, summaryFigures, weights } from './panels.js';

const SPANS = [['1 h', 3600], ['24 h', 86400], ['7 d', 604800], ['All', null]];

const button = (words, onclick, more = {}) => h('button', { type: 'button', onclick, ...more }, words);
const key = (kind) => h('span', { class: 'key' }, h('span', { class: `swatch ${kind}`, 'aria-hidden': 'true' }), kind);
const card = (title, ...inside) => h('section', { class: 'card' }, h('h2', {}, title), ...inside);

export async function show(put, { stream: streamName, series }) {
  const path = paths.series(streamName, series);
  const name = nameOfKey(series);
  const getEvents = () => ask(`${paths.stream(streamName)}/events`, { query: { series, limit: 200 } });
  let [stream, summary, events] = await Promise.all([ask(paths.stream(streamName)), ask(path), getEvents()]);
  const past = new History(streamName, series);
  const table = new LastRows();
  const chart = new Chart(past, { level: stream.level, on: { move, reset, pinned: () => !view.window, bounds } });
  chart.events = events;

  // What is looked at: a span that ends at the last row (null: all of it), or a window that stands still.
  const view = { span: null, window: null, chosen: null };
  let axisChosen = false;
  let changed = false; // rows came since the figures were fetched
  let missed = 0; // rows that came while a window stood still
  let oldest = null; // [at, row] of the oldest row seen

  const values = () => (chart.byRow ? past.columns.row : past.columns.at);
  const lastAt = () => Math.max(summary.at ?? 0, past.columns.at.at(-1) ?? 0);

  /** How far one can pan: all that the series has, whether it is loaded or not. */
  function bounds() {
    const high = chart.byRow ? Math.max(summary.rows - 1, 0) : lastAt();
    const low = oldest ? oldest[chart.byRow ? 1 : 0] : high;
    return [low, Math.max(high, low + 1e-3)];
  }

  /** The ends of the picture as it should be now. */
  function ends() {
    if (view.window) return view.window;
    const [first = 0] = values();
    const last = values().at(-1) ?? 1;
    const from = view.span === null ? null : lastAt() - view.span;
    const low = from === null ? first : chart.byRow ? past.columns.row[past.placeOf('at', from)] ?? first : from;
    return last > low ? [low, last] : [last - 1, last + 1];
  }

  /** A window on the axis, in seconds since 1970. */
  function inTime([min, max]) {
    if (!chart.byRow || !past.length) return [min, max];
    const at = (place) => past.columns.at[Math.min(Math.max(place, 0), past.length - 1)];
    return [at(past.placeOf('row', min) - 1), at(past.placeOf('row', max))];
  }

  /** The time that is asked for: a window with half of it at each side, so that panning has somewhere to go. */
  function asked(margin = 0.5) {
    if (!view.window) return [view.span === null ? null : lastAt() - view.span, null];
    const [from, to] = inTime(view.window);
    return [from - (to - from) * margin, to + (to - from) * margin];
  }

  function drawNow() {
    chart.draw(ends());
    table.paint();
    backToLive.hidden = !view.window;
    say(backToLive, missed ? `Back to live (${count(missed)} new)` : 'Back to live');
  }
  const draw = batched(drawNow, 200); // a chart is costly to draw, and moves by less than a pixel a row
  const describe = () => chart.frame.setAttribute('aria-label', chart.describe(name));

  async function load() {
    try {
      if (!await past.load(...asked())) return;
    } catch (error) {
      problem.replaceChildren(notice(error.message, { bad: true, retry: load }));
      return;
    }
    problem.replaceChildren();
    const [at, row] = [past.columns.at[0], past.columns.row[0]];
    if (past.length && !(oldest?.[1] <= row)) oldest = [at, row];
    if (!past.inOrder || !axisChosen) chart.byRow = !past.inOrder || past.inBursts;
    axis.value = chart.byRow ? 'row' : 'at';
    axis.disabled = !past.inOrder;
    say(drawn, past.thinned ? `${count(past.length)} of ${count(past.rows)} rows drawn; zoom in for more`
      : past.rows || !summary.rows ? `${count(past.rows)} rows` : 'No rows in this range.');
    const [from, to] = asked(0);
    csv.href = `${path}/history?${new URLSearchParams({ format: 'csv', from: from ?? '', to: to ?? '' })}`;
    drawNow();
    showChallengers();
    describe();
  }
  const loadSoon = settled(load, 150);

  /** Zoomed or panned: stand still there, unless the end is still followed, and fetch what is missing. */
  function move(min, max) {
    if (!(max > min)) return;
    const width = max - min;
    const follows = !view.window && !chart.byRow && max >= bounds()[1] - width * 1e-6;
    if (follows) view.span = width; else view.window = [min, max];
    press();
    chart.look(ends());
    backToLive.hidden = !view.window;
    const [first] = values();
    const last = values().at(-1);
    const enough = min >= first && max <= last && (!past.thinned || width >= 0.4 * (last - first));
    if (enough) describe(); else loadSoon();
  }

  function stand(window) {
    view.window = window;
    press();
    load();
  }

  function choose(span) {
    Object.assign(view, { span, window: null, chosen: span });
    missed = 0;
    press();
    load();
  }
  function reset() { choose(view.chosen); }

  const problem = h('div');
  const places = { figures: h('div'), weights: h('div'), scores: h('div'), events: h('div') };
  const challengers = h('div', { class: 'row', role: 'group', 'aria-label': 'Challengers' });
  const drawn = h('span', { class: 'quiet' });
  const backToLive = button('Back to live', reset, { class: 'primary', hidden: true });
  const spans = SPANS.map(([words, span]) => button(words, () => choose(span)));
  const custom = button('Custom', openCustom, { 'aria-expanded': 'false', 'aria-controls': 'custom' });
  const from = h('input', { type: 'datetime-local', step: 1, 'aria-label': `From, ${zoneWords()}` });
  const to = h('input', { type: 'datetime-local', step: 1, 'aria-label': `To, ${zoneWords()}`, oninput: () => to.setCustomValidity('') });
  const customForm = h('form', { id: 'custom', class: 'row', hidden: true, onsubmit: showCustom }, from, 'to', to,
    h('button', { type: 'submit' }, 'Show'), h('span', { class: 'quiet' }, zoneWords()));
  const axis = h('select', { 'aria-label': 'Axis', onchange: turnAxis },
    h('option', { value: 'at' }, 'by time'), h('option', { value: 'row' }, 'by row'));
  const csv = h('a', { class: 'button', download: '', title: 'Every row of this range as CSV' }, 'CSV');

  function press() {
    spans.forEach((one, place) => one.setAttribute('aria-pressed', String(!view.window && SPANS[place][1] === view.span)));
  }

  function openCustom() {
    customForm.hidden = !customForm.hidden;
    custom.setAttribute('aria-expanded', String(!customForm.hidden));
    [from.value, to.value] = inTime(ends()).map(toField);
    if (!customForm.hidden) from.focus();
  }

  function showCustom(event) {
    event.preventDefault();
    const [low, high] = [fromField(from.value), fromField(to.value)];
    if (!(low < high)) {
      to.setCustomValidity('The range must have two ends, the first before the second.');
      to.reportValidity();
      return;
    }
    [chart.byRow, axisChosen] = [false, true];
    stand([low, high]);
  }

  function turnAxis() {
    [chart.byRow, axisChosen] = [axis.value === 'row', true];
    reset();
  }

  function showChallengers() {
    const names = Object.keys(past.challengers);
    if (challengers.dataset.names === names.join('\n')) return;
    challengers.dataset.names = names.join('\n');
    challengers.replaceChildren(...names.map((model) => {
      const swatch = h('span', { class: 'swatch dashed', 'aria-hidden': 'true' });
      swatch.style.setProperty('--colour', `var(${chart.colourOf(model)})`);
      const chip = button([swatch, model], () => {
        chart.toggle(model, !chart.shown.has(model));
        chip.setAttribute('aria-pressed', String(chart.shown.has(model)));
      }, { class: 'chip', 'aria-pressed': String(chart.shown.has(model)), title: 'Show what this challenger predicted' });
      return chip;
    }));
  }

  /** Show about a hundred rows around an event, whatever time they take. */
  function showEvent(event) {
    const each = oldest ? (lastAt() - oldest[0]) / (summary.rows - 1 - oldest[1]) || 1 : 1;
    const [at, half] = chart.byRow ? [event.row, 50] : [event.at, 50 * each];
    stand([at - half, at + half]);
    chart.frame.focus();
  }

  function showFigures() {
    chart.scale = table.scale = summary.score?.rmse ?? null;
    places.figures.replaceChildren(summaryFigures(summary, stream.level));
    places.weights.replaceChildren(weights(summary.weights));
    places.scores.replaceChildren(scores(summary.scores, stream.champion, { caption: 'Scores on this series' }));
  }

  function showEvents(list) {
    events = chart.events = list;
    places.events.replaceChildren(eventList(events, showEvent));
  }

  async function refresh() {
    if (!changed) return;
    changed = false;
    try {
      summary = await ask(path);
      showFigures();
      describe();
      // Challengers are not among the live rows.
      if (chart.shown.size && !view.window) await load();
    } catch { /* the head says that the connection is gone, and what is here stays readable */ }
  }

  /** The last rows one by one, where the chart may hold a thinned choice of them. */
  async function loadTable() {
    const { at, row } = past.columns;
    const each = (at.at(-1) - at[0]) / (row.at(-1) - row[0]);
    const tail = new History(streamName, series);
    const longer = past.thinned && each > 0 && await tail.load(at.at(-1) - 40 * each, null);
    table.set((longer && tail.length ? tail : past).columns);
    draw();
  }

  put(
    h('nav', { class: 'crumbs', 'aria-label': 'Where you are' }, h('a', { href: hashes.list(streamName) }, streamName), ' /'),
    h('h1', {}, name),
    places.figures,
    h('section', { class: 'card', 'aria-label': 'Truth and prediction' },
      h('div', { class: 'row between' },
        h('div', { class: 'row' }, h('div', { class: 'segments', role: 'group', 'aria-label': 'Range: last' }, spans, custom), backToLive),
        h('div', { class: 'row' },
          h('div', { class: 'segments', role: 'group', 'aria-label': 'Zoom' },
            button('+', () => chart.hands.zoom(0.5), { 'aria-label': 'Zoom in' }),
            button('−', () => chart.hands.zoom(2), { 'aria-label': 'Zoom out' }),
            button('‹', () => chart.hands.pan(-0.5), { 'aria-label': 'Earlier' }),
            button('›', () => chart.hands.pan(0.5), { 'aria-label': 'Later' })),
          axis, csv)),
      customForm,
      h('div', { class: 'row legend' }, key('truth'), key('prediction'), key('interval'), challengers, drawn),
      problem, chart.readout, chart.frame,
      h('p', { id: 'chart-help', class: 'quiet' },
        h('span', { class: 'mouse' }, 'Drag to zoom, shift-drag or wheel to pan, double click to go back; keys + − ← → and 0. '),
        h('span', { class: 'touch' }, 'Drag to pan, pinch to zoom. '), `Times in ${zoneWords()}.`)),
    h('div', { class: 'columns' }, card('Expert weights', places.weights), card('Events', places.events)),
    card('Models', places.scores),
    card('Last rows', table.element));
  showFigures();
  showEvents(events);
  press();

  // Followed before the history is fetched: rows that come in between are kept, not lost.
  const unfollow = follow(streamName, [series], {
    rows: (rows) => {
      changed = true;
      table.live(rows);
      for (const one of rows) if (one.row >= summary.rows - 1) Object.assign(summary, { rows: one.row + 1, at: one.at });
      if (view.window) missed += rows.filter((one) => one.y === undefined).length; else past.upsert(rows);
      if (past.full) loadSoon();
      draw();
    },
    events: (list) => {
      showEvents([...list.toReversed(), ...events]);
      draw();
    },
    missed: async () => {
      changed = true;
      showEvents(await getEvents().catch(() => events));
      await load();
      await loadTable().catch(() => {});
    },
  });
  const endRefresh = every(3, refresh);
  await load();
  loadTable().catch(() => {});
  return () => {
    past.request?.abort();
    loadSoon.cancel();
    endRefresh();
    unfollow();
    chart.destroy();
  };
}
