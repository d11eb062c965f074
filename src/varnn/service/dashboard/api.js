// Everything asked of the service, and who we are to it.
import { seriesName } from './format.js';

export const session = { scope: 'read', csrf: null };
const RANKS = ['read', 'write', 'admin'];
export const may = (scope) => RANKS.indexOf(session.scope) >= RANKS.indexOf(scope);

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Where a person gives a token; the hash comes along, so that they land where they wanted to be. */
export function toLogin() {
  location.replace(`/login${location.hash}`);
  return new Promise(() => {}); // the page is leaving: whoever waits shall not go on
}

/** Say what an answer that was not good means, as an error to throw. */
export async function refusal(response) {
  let words = '';
  try {
    const answer = await response.json();
    words = answer.error ?? '';
    if (answer.request) words += ` (request ${answer.request})`;
  } catch { /* an error without JSON comes from something between us and the service */ }
  return new ApiError(response.status, words || `the service answered ${response.status} ${response.statusText}`);
}

/** Ask the service; gives what its JSON says. */
export async function ask(path, { method = 'GET', query = {}, json, body, signal } = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '') parameters.append(name, value);
  }
  const headers = { Accept: 'application/json' };
  if (json !== undefined) headers['Content-Type'] = 'application/json';
  if (body !== undefined) headers['Content-Type'] = 'application/octet-stream';
  if (method !== 'GET' && session.csrf) headers['X-CSRF-Token'] = session.csrf;
  let response;
  try {
    response = await fetch(parameters.size ? `${path}?${parameters}` : path, {
      method, headers, signal, cache: 'no-store', body: json === undefined ? body : JSON.stringify(json),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The service does not answer. Is it running, and is this machine connected?');
  }
  if (response.status === 401) return toLogin();
  if (!response.ok) throw await refusal(response);
  const text = await response.text();
  return text && (response.headers.get('content-type') ?? '').includes('json') ? JSON.parse(text) : null;
}

export async function openSession() {
  Object.assign(session, await ask('/v1/session'));
}

/** A series in a path or a query: the one without a name is a tilde. */
export const seriesKey = (series) => (series === null || series === undefined ? '~' : String(series));

export const paths = {
  stream: (stream) => `/v1/streams/${encodeURIComponent(stream)}`,
  series: (stream, key) => `${paths.stream(stream)}/series/${encodeURIComponent(key)}`,
  model: (model) => `/v1/models/${encodeURIComponent(model)}`,
  challenger: (stream, model) => `${paths.stream(stream)}/challengers/${encodeURIComponent(model)}`,
};

/** Addresses inside the page. */
export const hashes = {
  list: (stream) => `#/s/${encodeURIComponent(stream)}`,
  series: (stream, key) => `${hashes.list(stream)}/${encodeURIComponent(key)}`,
};

export const nameOfKey = (key) => (key === '~' ? seriesName(null) : key);
