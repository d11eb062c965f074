// Which page is shown, and what is around it: navigation, connection, theme, login.
import { ApiError, ask, hashes, may, nameOfKey, openSession, session } from './api.js';
import { h, notice, say } from './dom.js';
import { zoneWords } from './format.js';
import * as health from './health.js';
import * as list from './list.js';
import { onConnection } from './live.js';
import * as models from './models.js';
import * as series from './series.js';

const element = (id) => document.getElementById(id);
const main = element('main');
const nowhere = {
  show: (put) => put(h('h1', {}, 'No stream yet'), notice('A stream needs a model: upload one on the page Models, then POST /v1/streams.')),
};
let streams = [];
let end = null;
let turn = 0;

/** Read the address: #/s/house?q=a, #/s/house/kitchen, #/models, #/health. */
function route() {
  const [path, query] = location.hash.slice(1).split('?');
  let parts = [];
  try {
    parts = path.split('/').slice(1).map(decodeURIComponent);
  } catch { /* an address cut in the middle of a %xx leads to the list */ }
  if (parts[0] === 'models') return { page: models, title: 'Models', nav: 'models' };
  if (parts[0] === 'health') return { page: health, title: 'Health', nav: 'health' };
  const stream = (parts[0] === 's' && parts[1]) || streams[0]?.name;
  if (!stream) return { page: nowhere, title: 'No stream', nav: 'series' };
  if (parts.length > 2) return { page: series, stream, series: parts[2], title: `${nameOfKey(parts[2])} · ${stream}`, nav: 'series' };
  return { page: list, stream, query: new URLSearchParams(query), title: stream, nav: 'series' };
}

async function go({ focus = true } = {}) {
  const mine = ++turn;
  end?.();
  end = null;
  if (!streams.length) streams = await ask('/v1/streams').catch(() => []);
  const to = route();
  document.title = `${to.title} · varnn`;
  for (const link of document.querySelectorAll('.top nav [id]')) {
    if (link.id === `nav-${to.nav}`) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  if (to.stream) {
    element('nav-series').href = hashes.list(to.stream);
    element('stream').value = to.stream;
  }
  // A page that comes late, when someone has gone on, must not take the place of the next one.
  const put = (...children) => { if (mine === turn) main.replaceChildren(...children); };
  try {
    const ended = await to.page.show(put, to);
    if (mine !== turn) return void ended?.();
    end = ended;
  } catch (error) {
    if (!(error instanceof ApiError)) console.error(error);
    put(h('h1', {}, 'This did not work'), notice(error.message, { bad: true, retry: () => go() }),
      h('p', {}, h('a', { href: '#/' }, 'To the list of series')));
  }
  // A reader's place is at the top of the new page, and a screen reader says what it is.
  if (focus) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

async function logout() {
  await fetch('/logout', { method: 'POST', headers: { 'X-CSRF-Token': session.csrf } }).catch(() => {});
  location.assign('/login');
}

async function start() {
  const theme = () => element('theme').setAttribute('aria-pressed', document.documentElement.dataset.theme === 'dark');
  element('theme').addEventListener('click', () => window.toggleTheme());
  addEventListener('themechange', theme);
  theme();
  element('logout').addEventListener('click', logout);
  say(element('zone'), `Times are shown in ${zoneWords()}.`);
  const words = { live: 'live', lost: 'Connection lost, trying again …' };
  onConnection((state) => {
    element('connection').dataset.state = state;
    say(element('connection'), words[state] ?? '');
  });
  try {
    [, streams] = await Promise.all([openSession(), ask('/v1/streams')]);
  } catch (error) {
    main.replaceChildren(notice(error.message, { bad: true, retry: () => location.reload() }));
    return;
  }
  element('scope').hidden = may('write');
  element('logout').hidden = !session.csrf;
  element('stream').replaceChildren(...streams.map((stream) => h('option', { value: stream.name }, stream.name)));
  element('streams').hidden = streams.length < 2;
  element('stream').addEventListener('change', () => { location.hash = hashes.list(element('stream').value); });
  addEventListener('hashchange', () => { if (location.hash !== '#main') go(); });
  await go({ focus: false });
}

start();
