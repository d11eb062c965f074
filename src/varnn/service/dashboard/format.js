// Times and names, in the viewer's language and time zone.
import { NONE, axisNumbers, count, decimalFormat, known, minus, number } from './numbers.js';

export { axisNumbers, count, number };
/** A share as percent; signed where it is a gain or a loss. */
export function percent(share, { signed = false } = {}) {
  if (!known(share)) return NONE;
  const value = Math.round(share * 100);
  if (Math.abs(value) > 999) return value > 0 ? '> 999 %' : '< −999 %';
  const text = `${Math.abs(value)} %`;
  if (value < 0) return `−${text}`;
  return signed && value > 0 ? `+${text}` : text;
}

/** Whether intervals hold clearly fewer labels than they promise. */
export const isLow = (coverage, level) => known(coverage) && known(level) && coverage < level - 0.05;

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'local time';

/** The zone with its distance from UTC now: "Europe/Berlin, UTC+1". */
export function zoneWords() {
  const parts = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset' }).formatToParts();
  const offset = parts.find((part) => part.type === 'timeZoneName').value.replace('GMT', 'UTC');
  return zone === 'UTC' ? zone : `${zone}, ${offset}`;
}

const format = (options) => new Intl.DateTimeFormat(undefined, options);
const clock = format({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const minute = format({ hour: '2-digit', minute: '2-digit' });
const day = format({ day: 'numeric', month: 'short' });
const date = format({ dateStyle: 'medium' });
const full = format({ dateStyle: 'medium', timeStyle: 'medium' });

// Beyond what a Date can hold, a made-up time must not throw in the middle of a page.
const moment = (at) => (known(at) && Math.abs(at) < 8e12 ? new Date(at * 1000) : null);

/** A time, in seconds since 1970, as short as today allows. */
export function when(at) {
  const then = moment(at);
  if (!then) return NONE;
  const now = new Date();
  if (then.toDateString() === now.toDateString()) return clock.format(then);
  return `${(then.getFullYear() === now.getFullYear() ? day : date).format(then)}, ${minute.format(then)}`;
}

export const fullTime = (at) => { const then = moment(at); return then ? full.format(then) : NONE; };

/** Labels of a time axis: time of day, with the day where it changes; days where steps are long. */
export function axisTimes(splits, step) {
  let last = null;
  return splits.map((at) => {
    const then = moment(at);
    if (!then) return '';
    const today = (step >= 86400 * 200 ? date : day).format(then);
    if (step >= 86400) return today;
    const time = (step < 60 ? clock : minute).format(then);
    const label = today === last ? time : `${time}\n${today}`;
    last = today;
    return label;
  });
}

/** Seconds since 1970 for a datetime-local field and back, in the viewer's zone. */
export function toField(at) {
  const then = moment(at);
  if (!then) return '';
  const local = new Date(then.getTime() - then.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, 19);
}
export const fromField = (text) => { const at = new Date(text).getTime() / 1000; return known(at) ? at : null; };

/** The two largest units of a time: "1 d 3 h". */
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  let rest = Math.round(seconds);
  const parts = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]].map(([name, size]) => {
    const whole = Math.floor(rest / size);
    rest -= whole * size;
    return whole ? `${whole} ${name}` : '';
  });
  return parts.filter(Boolean).slice(0, 2).join(' ') || '0 s';
}

export function bytes(size) {
  if (!known(size)) return NONE;
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(Math.floor(Math.log10(Math.max(size, 1)) / 3), 4);
  return `${decimalFormat(power && size / 1000 ** power < 100 ? 1 : 0).format(size / 1000 ** power)} ${units[power]}`;
}

/** What a person calls a series; the one without a name has a dash. */
export const seriesName = (series) => (series === null || series === undefined ? '(no name)' : String(series));

// As a monitor's own words, without the series: the glyphs are those drawn into the chart.
export const EVENT_MARKS = { 'level shift': '▼', 'variance change': '◆', 'coverage lost': '●' };
export function eventWords(event) {
  if (!known(event.size)) return String(event.kind);
  const size = minus(String(Number(event.size.toPrecision(3))));
  return {
    'level shift': `Level shift of ${event.size > 0 ? '+' : ''}${size}`,
    'variance change': `Variance change: spread × ${size}`,
    'coverage lost': `Coverage lost: ${minus(String(Math.round(100 * event.size)))} points`,
  }[event.kind] ?? String(event.kind);
}
