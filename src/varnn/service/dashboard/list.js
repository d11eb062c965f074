// The series of a stream, worst first: found again by search, a page at a time, live.
import { ask, hashes, paths, seriesKey, session } from './api.js';
import { batched, h, notice, say, settled } from './dom.js';
import { count } from './format.js';
import { every, follow } from './live.js';
import { Row } from './row.js';

const LIMIT = 50;
const SORTS = { trouble: 'Trouble first', name: 'Name', recent: 'Latest first' };
const HEADS = [
  ['name', 'Series'], ['trend', 'Last 60 labels'], ['value', 'Last'], ['value', 'Predicted'],
  ['skill', 'Skill', 'Share of the squared error of persistence (the last label again) that is saved'],
  ['coverage', 'Coverage', 'Share of labels inside the interval'],
  ['alarms', 'Alarms', 'Changes noticed in the last 1,000 rows'], ['at', 'Last row'],
];

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** How to send the first rows, as a command to paste. */
function firstRows(stream) {
  const x = Object.fromEntries(stream.inputs.map((input) => [input, 0]));
  const post = (message) => `curl ${quoted(`${location.origin}${paths.stream(stream.name)}/step`)} \\\n`
    + (session.csrf ? '  -H "Authorization: Bearer $VARNN_TOKEN" \\\n' : '')
    + `  -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(message))}`;
  const row = (ago) => (stream.needs_time ? { x, time: new Date(Date.now() - ago).toISOString() } : { x });
  return `${post({ series: 'first', ...row(6e4) })}\n\n# the label of that row, and the next row\n${post({ series: 'first', last_y: 1, ...row(0) })}`;
}

function empty(stream) {
  return h('section', { class: 'card empty' },
    h('h2', {}, 'No rows yet'),
    h('p', {}, 'Series come into being with their first row. Send one, and this page shows it:'),
    h('pre', { tabindex: 0, 'aria-label': 'Command that sends the first row' }, firstRows(stream)),
    h('p', { class: 'quiet' }, 'More ways are in the ', h('a', { href: '/docs' }, 'description of the API'), '.'));
}

/** Show the list with `put`; gives a function that ends it. */
export async function show(put, { stream: name, query }) {
  const stream = await ask(paths.stream(name));
  const state = {
    search: query.get('q') ?? '',
    sort: query.get('sort') in SORTS ? query.get('sort') : 'trouble',
    page: Math.max(0, (Number.parseInt(query.get('page'), 10) || 1) - 1),
  };
  const rows = new Map(); // key -> Row, those of this page
  let total = 0;
  let request = null;
  let followed = null;
  let unfollow = () => {};

  const search = h('input', {
    type: 'search', id: 'search', placeholder: 'Search series', 'aria-label': 'Search series', value: state.search,
    autocomplete: 'off', spellcheck: 'false', maxlength: 200,
  });
  const sort = h('select', { id: 'sort', 'aria-label': 'Sort by' },
    Object.entries(SORTS).map(([value, words]) => h('option', { value, selected: value === state.sort }, words)));
  const found = h('span', { class: 'quiet', role: 'status' });
  const body = h('div', { role: 'rowgroup' });
  const table = h('div', { role: 'table', class: 'list', 'aria-label': `Series of ${name}` },
    h('div', { role: 'rowgroup' }, h('div', { role: 'row', class: 'line head' },
      HEADS.map(([kind, words, title]) => h('div', { role: 'columnheader', class: kind, title }, words)))),
    body);
  const turn = (words, page) => h('button', { type: 'button', onclick: () => change({ page: page() }) }, words);
  const first = turn('« First', () => 0);
  const before = turn('‹ Previous', () => state.page - 1);
  const next = turn('Next ›', () => state.page + 1);
  const where = h('span', { class: 'quiet' });
  const pages = h('nav', { class: 'pages', 'aria-label': 'Pages of the list' }, first, before, where, next);
  const inside = h('div');

  // Only rows in sight are painted; the others are when they come into it.
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) entry.target.row.visible = entry.isIntersecting;
    paint();
  }, { rootMargin: '100px' });
  let ink = '';
  const paintNow = () => { for (const row of rows.values()) row.paint(ink); };
  const paint = batched(paintNow);
  const retheme = () => {
    ink = getComputedStyle(document.documentElement).getPropertyValue('--truth').trim();
    for (const row of rows.values()) row.stale = true;
    paint();
  };

  /** Look at something else: another page, order or search; the address says which. */
  async function change(to) {
    Object.assign(state, { page: 0 }, to);
    const words = new URLSearchParams();
    if (state.search) words.set('q', state.search);
    if (state.sort !== 'trouble') words.set('sort', state.sort);
    if (state.page) words.set('page', state.page + 1);
    history.replaceState(null, '', hashes.list(name) + (words.size ? `?${words}` : ''));
    await refresh();
    if ('page' in to) scrollTo(0, 0);
  }

  /** Follow what is on the page; in an empty stream everything, to see the first row come. */
  function listen() {
    const keys = [...rows.keys()];
    const wanted = keys.toSorted().join('\n');
    if (wanted === followed) return;
    followed = wanted;
    unfollow();
    unfollow = () => {};
    if (keys.length || !state.search) unfollow = follow(name, keys, {
      rows: (list) => {
        for (const one of list) rows.get(seriesKey(one.series))?.live(one);
        paint();
        if (!total) soon();
      },
      events: (list) => {
        for (const one of list) rows.get(seriesKey(one.series))?.alarm(one);
        paint();
      },
      missed: refresh,
    });
  }

  function place(summaries) {
    // Rows stay where they are while someone is about to press one; the next refresh moves them.
    const busy = body.matches(':hover') || body.contains(document.activeElement);
    const keys = summaries.map((summary) => seriesKey(summary.series));
    const same = keys.length === rows.size && keys.every((key) => rows.has(key));
    for (const [key, row] of rows) {
      if (keys.includes(key)) continue;
      seen.unobserve(row.element);
      row.element.remove();
      rows.delete(key);
    }
    summaries.forEach((summary, at) => {
      let row = rows.get(keys[at]);
      if (row) {
        row.take(summary);
      } else {
        row = new Row(stream, summary);
        row.visible = true; // until the observer says otherwise: the first look must not be at empty cells
        rows.set(row.key, row);
        seen.observe(row.element);
      }
      if (!(busy && same) && body.children[at] !== row.element) body.insertBefore(row.element, body.children[at] ?? null);
    });
    paintNow();
  }

  async function refresh() {
    request?.abort();
    request = new AbortController();
    let answer;
    try {
      answer = await ask(`${paths.stream(name)}/series`, {
        query: { search: state.search, sort: state.sort, limit: LIMIT, offset: state.page * LIMIT, spark: 60 },
        signal: request.signal,
      });
    } catch (error) {
      // What is on the page stays readable; the head says that the connection is gone.
      if (error.name !== 'AbortError' && !rows.size) inside.replaceChildren(notice(error.message, { bad: true, retry: refresh }));
      return;
    }
    ({ total } = answer);
    const last = Math.max(0, Math.ceil(total / LIMIT) - 1);
    if (state.page > last) return void change({ page: last });
    place(answer.series);
    if (!total) inside.replaceChildren(state.search ? notice(`No series has “${state.search}” in its name.`) : empty(stream));
    else if (!inside.contains(table)) inside.replaceChildren(table, pages);
    say(found, state.search ? `${count(total)} found` : '');
    const from = state.page * LIMIT;
    say(where, `${count(from + 1)}–${count(Math.min(from + LIMIT, total))} of ${count(total)}`);
    pages.hidden = total <= LIMIT;
    first.disabled = before.disabled = !state.page;
    next.disabled = state.page >= last;
    listen();
  }
  const soon = settled(refresh, 300);
  search.addEventListener('input', settled(() => change({ search: search.value.trim() }), 150));
  sort.addEventListener('change', () => change({ sort: sort.value }));

  /** Arrows go from series to series, a slash to the search. */
  function keys(event) {
    const at = document.activeElement;
    if (event.ctrlKey || event.metaKey || event.altKey || at === sort) return;
    if (event.key === '/' && at !== search) {
      event.preventDefault();
      search.focus();
    }
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || !(at === search || at.id === 'main' || at === document.body || body.contains(at))) return;
    const links = [...body.querySelectorAll('a')];
    const to = links.indexOf(at) + by;
    event.preventDefault();
    (to < 0 ? search : links[Math.min(to, links.length - 1)])?.focus();
  }

  put(
    h('div', { class: 'row between' },
      h('div', {}, h('h1', {}, name), h('p', { class: 'quiet' }, `Predicts ${stream.target ?? 'its target'} with ${stream.champion}`,
        stream.challengers.length > 0 && `, challenged by ${stream.challengers.join(', ')}`)),
      h('div', { class: 'row find' }, found, search, sort)),
    inside);
  retheme();
  document.addEventListener('keydown', keys);
  addEventListener('themechange', retheme);
  const endRefresh = every(10, refresh);
  await refresh();
  return () => {
    request?.abort();
    soon.cancel();
    endRefresh();
    unfollow();
    seen.disconnect();
    document.removeEventListener('keydown', keys);
    removeEventListener('themechange', retheme);
  };
}
