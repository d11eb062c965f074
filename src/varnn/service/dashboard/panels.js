// What stands beside the chart of a series: figures, weights of the experts, scores, events, last rows.
import { h, say } from './dom.js';
import { EVENT_MARKS, count, eventWords, fullTime, isLow, number, percent, when, zone } from './format.js';

const LAST_ROWS = 20;

/** A table that scrolls by itself where it is too wide. `texts` are the columns that are no numbers. */
export function grid(caption, heads, body, texts) {
  return h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': caption }, h('table', {},
    h('caption', {}, caption),
    h('thead', {}, h('tr', {}, heads.map((one) => h('th', { scope: 'col', class: texts.includes(one) && 'text' }, one)))),
    body));
}

/** Figures of a series in a line. */
export function summaryFigures(summary, level) {
  const score = summary.score ?? {};
  const value = (one) => number(one, score.rmse);
  const list = [
    ['Last label', value(summary.y)],
    ['Prediction', value(summary.prediction), 'predicted'],
    typeof summary.lower === 'number' && [`${percent(level)} interval`, `${value(summary.lower)} … ${value(summary.upper)}`],
    ['Skill', percent(score.skill, { signed: true }), score.skill < 0 ? 'bad' : score.skill > 0.05 ? 'good' : '',
      'Share of the squared error of persistence that is saved; the last 500 rows count most'],
    ['Coverage', percent(score.coverage), isLow(score.coverage, level) && 'bad', `Share of labels inside the interval; ${percent(level)} is promised`],
    ['RMSE', number(score.rmse), '', 'Root of the mean squared error; the last 500 rows count most'],
    ['Alarms', summary.alarms ? count(summary.alarms) : 'none', summary.alarms && 'bad', 'In the last 1,000 rows'],
    ['Rows', count(summary.rows)],
    ['Waiting for labels', count(summary.waiting?.length)],
  ];
  return h('dl', { class: 'figures' }, list.filter(Boolean).map(([name, words, kind, title]) => h('div', { title },
    h('dt', {}, name), h('dd', { class: kind }, words))));
}

/** Bars of how much each expert is believed. */
export function weights(of) {
  const entries = Object.entries(of ?? {}).sort((one, two) => two[1] - one[1]);
  if (!entries.length) return h('p', { class: 'quiet' }, 'This model has no experts to weigh.');
  return h('ul', { class: 'weights' }, entries.map(([name, weight]) => {
    const bar = h('span', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--share', weight);
    return h('li', {}, h('span', { class: 'what' }, name), bar, h('span', { class: 'share' }, percent(weight)));
  }));
}

/** Scores of models side by side, the champion first; `actions(name)` gives what can be done with one. */
export function scores(of, champion, { actions = null, caption }) {
  const names = Object.keys(of ?? {}).sort((one, two) => (two === champion) - (one === champion) || one.localeCompare(two));
  const best = Math.min(...names.map((name) => of[name]?.rmse ?? Infinity));
  const heads = ['Model', 'Role', 'RMSE', 'MAE', 'Skill', 'Coverage', 'Width', 'Rows', ...(actions ? ['Actions'] : [])];
  return grid(caption, heads, h('tbody', {}, names.map((name) => {
    const score = of[name] ?? {};
    const leads = name === champion;
    return h('tr', {},
      h('th', { scope: 'row' }, name),
      h('td', { class: 'text' }, h('span', { class: leads ? 'tag strong' : 'tag' }, leads ? 'champion' : 'challenger')),
      h('td', { class: score.rmse === best && names.length > 1 && 'best' }, number(score.rmse)),
      h('td', {}, number(score.mae)),
      h('td', { class: score.skill < 0 && 'bad' }, percent(score.skill, { signed: true })),
      h('td', {}, percent(score.coverage)),
      h('td', {}, number(score.width)),
      h('td', {}, count(score.rows)),
      actions && h('td', { class: 'text' }, actions(name)));
  })), ['Role', 'Actions']);
}

/** Events, newest first; `go(event)` shows one in the chart. */
export function eventList(events, go) {
  if (!events.length) return h('p', { class: 'quiet' }, 'Nothing was noticed so far.');
  return h('ul', { class: 'events' }, events.slice(0, 100).map((event) => h('li', {},
    h('button', { type: 'button', class: 'plain', onclick: () => go(event), title: fullTime(event.at) },
      h('span', { class: 'glyph', 'aria-hidden': 'true' }, EVENT_MARKS[event.kind] ?? '▼'),
      h('span', {}, eventWords(event)),
      h('span', { class: 'quiet' }, `${when(event.at)} · row ${count(event.row)}, begun about row ${count(event.began)}`)))));
}

/** The last rows as a table: what the chart shows, to be read. Its cells are changed, not made anew. */
export class LastRows {
  constructor() {
    this.rows = [];
    this.scale = null;
    const time = `Time (${zone})`;
    this.body = h('tbody');
    this.element = grid('Newest first', ['Row', time, 'Truth', 'Prediction', 'Lower', 'Upper', 'Innovation'], this.body, [time]);
  }

  /** Start from a history's columns. */
  set(columns) {
    this.rows = columns.row.map((row, place) => Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, values[place]]))).slice(-LAST_ROWS);
  }

  live(rows) {
    for (const one of rows) {
      const known = this.rows.find((row) => row.row === one.row);
      if (known) Object.assign(known, one);
      else if (!this.rows.length || one.row > this.rows.at(-1).row) this.rows.push({ ...one });
    }
    this.rows.splice(0, this.rows.length - LAST_ROWS);
  }

  paint() {
    const { body, rows } = this;
    while (body.children.length > rows.length) body.lastChild.remove();
    while (body.children.length < rows.length) {
      body.append(h('tr', {}, Array.from({ length: 7 }, (_, place) => h('td', { class: place === 1 && 'text' }))));
    }
    rows.toReversed().forEach((row, place) => {
      const cells = body.children[place].children;
      const labelled = typeof row.y === 'number';
      const innovation = labelled ? row.y - row.prediction : null;
      const numbers = [row.y, row.prediction, row.lower, row.upper, innovation].map((one) => number(one, this.scale));
      [count(row.row), when(row.at), ...numbers].forEach((text, at) => say(cells[at], text));
      cells[6].classList.toggle('bad', labelled && (row.y < row.lower || row.y > row.upper));
    });
  }
}
