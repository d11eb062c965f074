// The rows of one series that are on the page: a range of its history, and what came live since.
import { ask, paths } from './api.js';

const NAMES = ['row', 'at', 'y', 'prediction', 'lower', 'upper'];
// Beyond this many points a live chart asks anew, and the service thins them again.
const MOST = 4000;

export class History {
  constructor(stream, key) {
    this.path = `${paths.series(stream, key)}/history`;
    this.columns = Object.fromEntries(NAMES.map((name) => [name, []]));
    this.challengers = {};
    this.thinned = false;
    this.timed = false;
    this.rows = 0; // in the range, drawn or not
    this.request = null; // the one under way
    this.early = []; // live rows that came meanwhile: they may be newer than its answer
  }

  get length() { return this.columns.row.length; }

  /** Times never go back, which they may where a clock was set, or some rows bring times and others do not. */
  get inOrder() { return this.columns.at.every((at, place, all) => !place || at >= all[place - 1]); }

  /** Most rows came without times and many at once: when they arrived says nothing. */
  get inBursts() {
    const { at } = this.columns;
    return !this.timed && at.filter((one, place) => place && one - at[place - 1] < 0.05).length > at.length / 2;
  }

  get full() { return this.length > MOST; }

  /** Fetch a range, in seconds since 1970; null is open. Gives false where a later call overtook it. */
  async load(from, to) {
    this.request?.abort();
    const mine = this.request = new AbortController();
    try {
      const answer = await ask(this.path, { query: { from, to, points: 2000 }, signal: mine.signal });
      if (mine !== this.request) return false;
      for (const name of NAMES) this.columns[name] = answer.columns[name];
      this.challengers = Object.fromEntries(
        Object.entries(answer.challengers).map(([name, one]) => [name, one.prediction]));
      this.thinned = answer.thinned;
      this.timed = answer.columns.time.some((one) => one !== null);
      this.rows = answer.rows;
      return true;
    } catch (error) {
      if (error.name === 'AbortError') return false;
      throw error;
    } finally {
      if (mine === this.request) {
        this.request = null;
        this.upsert(this.early.splice(0));
      }
    }
  }

  /** Take live rows: new ones at the end, labels where their row is. */
  upsert(rows) {
    if (this.request) {
      this.early.push(...rows);
      return;
    }
    const { columns } = this;
    for (const one of rows) {
      let place = this.length - 1;
      while (place >= 0 && columns.row[place] > one.row) place -= 1;
      if (place >= 0 && columns.row[place] === one.row) {
        for (const name of NAMES) columns[name][place] = one[name] ?? columns[name][place];
      } else if (place === this.length - 1) {
        for (const name of NAMES) columns[name].push(one[name] ?? null);
        for (const challenger of Object.values(this.challengers)) challenger.push(null);
        this.rows += 1;
      } // else: a row between two that are shown; the next load may have it
    }
  }

  /** Innovation of the row at `place`: label less prediction, or null. */
  innovation(place) {
    const { y, prediction } = this.columns;
    return typeof y[place] === 'number' && typeof prediction[place] === 'number' ? y[place] - prediction[place] : null;
  }

  /** Those that are known, from one place to another. */
  innovations(from, to) {
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, place) => this.innovation(from + place)).filter((one) => one !== null);
  }

  /** True or false where a label is outside its interval or inside; null where one of them is missing. */
  outside(place) {
    const { y, lower, upper } = this.columns;
    if (typeof y[place] !== 'number' || typeof lower[place] !== 'number') return null;
    return y[place] < lower[place] || y[place] > upper[place];
  }

  /** First place whose row is at `x` or later, by `name` ('at' or 'row'). */
  placeOf(name, x) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.columns[name][middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  }
}
