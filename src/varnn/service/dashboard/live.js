// Server-sent events of one stream. Read by fetch and not by EventSource, which tells neither a refused login
// from a busy server, nor a connection that died in silence (a laptop that slept) from a quiet one.
import { paths, refusal, toLogin } from './api.js';

// The service says something at least every 15 s.
const SILENCE = 40_000;
// Browsers open six connections to a server: tabs nobody sees give theirs back.
const HIDDEN = 10_000;
// Longer addresses are refused by some proxies; rows beyond it are brought up to date by the next refresh.
const LONGEST = 6_000;

const listeners = new Set();
let state = 'idle';
let latest = null; // who follows now, and so may say how the connection is

/** Hear of the connection: 'idle', 'live' or 'lost'. */
export function onConnection(listener) {
  listeners.add(listener);
  listener(state);
}

function become(who, next) {
  if (who !== latest || next === state) return;
  state = next;
  for (const listener of listeners) listener(state);
}

function address(stream, keys) {
  let url = `${paths.stream(stream)}/live`;
  keys.forEach((key, place) => {
    const more = `${place ? '&' : '?'}series=${encodeURIComponent(key)}`;
    if (url.length + more.length < LONGEST) url += more;
  });
  return url;
}

/** Take a stream of server-sent events apart, calling `on[event](data)`. */
async function read(body, on, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const blocks = (rest + value).replaceAll('\r\n', '\n').split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      let event = 'message';
      const data = [];
      for (const line of block.split('\n')) {
        if (line.startsWith('event:')) event = line.slice(6).trim();
        else if (line.startsWith('data:')) data.push(line.slice(5));
      }
      try {
        on[event]?.(data.length ? JSON.parse(data.join('\n')) : null);
      } catch (error) {
        reportError(error); // a bug of a page, and no reason to hang up
      }
    }
  }
}

/**
 * Follow series of a stream until closed. `on.rows(list)` and `on.events(list)` take what comes;
 * `on.missed()` says that something did not, so that the caller asks for it.
 */
export function follow(stream, keys, on) {
  let closed = false;
  let abort = null;
  let failures = 0;
  let timer = 0;
  let silence = 0;
  let hidden = 0;
  let gap = false;
  let paused = false;
  const me = latest = {};

  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => abort?.abort(), SILENCE);
  };

  async function connect() {
    clearTimeout(timer);
    const mine = new AbortController();
    abort = mine;
    let wait = 0;
    try {
      heard();
      const response = await fetch(address(stream, keys), {
        signal: mine.signal, cache: 'no-store', headers: { Accept: 'text/event-stream' },
      });
      if (response.status === 401) return void toLogin();
      if (!response.ok) {
        wait = 1000 * Number(response.headers.get('retry-after') ?? 0);
        throw await refusal(response);
      }
      failures = 0;
      become(me, 'live');
      if (gap) on.missed();
      gap = false;
      await read(response.body, { rows: on.rows, events: on.events, lagging: on.missed }, heard);
    } catch { /* refused, cut off or silent: all the same, try again */ }
    clearTimeout(silence);
    if (closed || mine !== abort || paused) return;
    // Everyone comes back at once after a restart: later each time, and not in step.
    failures += 1;
    gap = true;
    become(me, 'lost');
    timer = setTimeout(connect, Math.max(wait, Math.min(15_000, 500 * 2 ** failures) * (0.75 + Math.random() / 2)));
  }

  function look() {
    clearTimeout(hidden);
    if (document.hidden) {
      hidden = setTimeout(() => {
        become(me, 'idle');
        paused = true;
        gap = true;
        clearTimeout(timer);
        abort?.abort();
      }, HIDDEN);
    } else if (paused) {
      paused = false;
      connect();
    }
  }

  document.addEventListener('visibilitychange', look);
  connect();
  return () => {
    closed = true;
    document.removeEventListener('visibilitychange', look);
    clearTimeout(timer);
    clearTimeout(hidden);
    clearTimeout(silence);
    abort?.abort();
    become(me, 'idle');
  };
}

/** Call `action` now and then while someone looks; gives a function that ends it. */
export function every(seconds, action) {
  const timer = setInterval(() => { if (!document.hidden) action(); }, seconds * 1000);
  return () => clearInterval(timer);
}
