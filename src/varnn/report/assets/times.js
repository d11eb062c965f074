// Times as the data have them: a report reads the same in every time zone, so they are written as if in UTC.

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const DAY = 86400;

/** "2026-01-15 06:00", with seconds where there are any. */
export function plainTime(seconds) {
  const text = new Date(Math.round(seconds * 1000)).toISOString().replace('T', ' ').replace('Z', '');
  return text.replace(/\.000$/, '').replace(/:00$/, '');
}

/** Labels of a time axis, each as brief as the one before it allows. */
export function axisDates(splits, step) {
  let last = null;
  return splits.map((at) => {
    const now = new Date(at * 1000);
    const year = now.getUTCFullYear();
    const month = MONTHS[now.getUTCMonth()];
    const day = `${now.getUTCDate()} ${month}`;
    const before = last;
    last = { year, day };
    if (step >= 300 * DAY) return String(year);
    if (step >= 27 * DAY) return before?.year === year ? month : `${month}\n${year}`;
    if (step >= DAY) return before?.year === year ? day : `${day}\n${year}`;
    const clock = now.toISOString().slice(11, step < 1 ? 23 : step < 60 ? 19 : 16);
    if (before?.day === day) return clock;
    return before?.year === year ? `${clock}\n${day}` : `${clock}\n${day} ${year}`;
  });
}
