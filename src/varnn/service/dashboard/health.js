// How the service is: what /v1/health says, in words where we know them and as it is where we do not.
import { ask } from './api.js';
import { h, notice } from './dom.js';
import { bytes, count, duration, number } from './format.js';
import { every } from './live.js';

const words = (key) => { const text = key.replace(/_(bytes|seconds|ms)$/, '').replaceAll('_', ' '); return text[0].toUpperCase() + text.slice(1); };

function value(key, given) {
  if (given === null) return 'none';
  if (typeof given === 'boolean') return given ? 'yes' : 'no';
  if (typeof given !== 'number') return String(given);
  if (/seconds/.test(key)) return duration(given);
  if (/bytes/.test(key)) return bytes(given);
  if (/_ms$/.test(key)) return `${number(given)} ms`;
  return Number.isInteger(given) ? count(given) : number(given);
}

/** Plain figures first, then what holds figures of its own, under its name. */
function facts(title, given, level = 2) {
  const [figures, nested] = [[], []];
  for (const entry of Object.entries(given)) (entry[1] !== null && typeof entry[1] === 'object' ? nested : figures).push(entry);
  return h('section', { class: level === 2 && 'card' },
    h(`h${Math.min(level, 6)}`, {}, title),
    h('dl', { class: 'facts' }, figures.map(([key, one]) => h('div', {}, h('dt', {}, words(key)), h('dd', {}, value(key, one))))),
    nested.map(([key, one]) => facts(words(key), one, level + 1)));
}

export async function show(put) {
  const place = h('div');
  put(h('h1', {}, 'Health'), place);
  async function refresh() {
    try {
      const { streams = [], ...service } = await ask('/v1/health');
      place.replaceChildren(
        ...streams.filter((one) => one.trouble).map((one) => notice(`Stream ${one.name}: ${one.trouble}`, { bad: true })),
        facts('Service', service), ...streams.map(({ name, ...one }) => facts(`Stream ${name}`, one)));
    } catch (error) {
      place.replaceChildren(notice(error.message, { bad: true, retry: refresh }));
    }
  }
  await refresh();
  return every(2, refresh);
}
