// Models: champion and challengers of each stream with their scores side by side; upload, promote, retire.
import { ask, may, paths } from './api.js';
import { h, notice, say } from './dom.js';
import { bytes } from './format.js';
import { every } from './live.js';
import { grid, scores } from './panels.js';

const button = (words, onclick, label) => h('button', { type: 'button', onclick, 'aria-label': label }, words);

export async function show(put) {
  const streamsPlace = h('div');
  const modelsPlace = h('div');
  const message = h('div', { tabindex: -1 });
  const admin = may('admin');
  let models = [];
  let last = '';

  /** Do what an admin asked for, and say how it went. */
  async function act(doing, done) {
    try {
      await doing();
      message.replaceChildren(notice(done));
      message.focus(); // what was pressed is about to be drawn anew
      await refresh();
    } catch (error) {
      message.replaceChildren(notice(error.message, { bad: true }));
    }
  }

  async function promote(stream, model) {
    if (confirm(`Promote ${model}?\n\nIt answers for ${stream.name} from the next row on; ${stream.champion} stays as a challenger.`)) {
      await act(() => ask(`${paths.challenger(stream.name, model)}/promote`, { method: 'POST' }), `${model} is the champion of ${stream.name} now.`);
    }
  }

  async function retire(stream, model) {
    if (confirm(`Retire ${model}?\n\nIt leaves ${stream.name}, and what it learned there is dropped. Its file stays.`)) {
      await act(() => ask(paths.challenger(stream.name, model), { method: 'DELETE' }), `${model} no longer challenges ${stream.name}.`);
    }
  }

  async function remove(model) {
    if (confirm(`Delete the file of ${model}?`)) await act(() => ask(paths.model(model), { method: 'DELETE' }), `${model} is deleted.`);
  }

  function challenge(stream) {
    const used = new Set([stream.champion, ...stream.challengers]);
    const free = models.map((model) => model.name).filter((model) => !used.has(model));
    if (!free.length) return h('p', { class: 'quiet' }, 'Upload another model to challenge it.');
    const choice = h('select', { 'aria-label': `New challenger of ${stream.name}` }, free.map((model) => h('option', { value: model }, model)));
    return h('form', {
      class: 'row',
      onsubmit: (event) => {
        event.preventDefault();
        act(() => ask(`${paths.stream(stream.name)}/challengers`, { method: 'POST', json: { model: choice.value } }),
          `${choice.value} challenges ${stream.champion} on ${stream.name} from the next row on.`);
      },
    }, choice, h('button', { type: 'submit' }, 'Add as challenger'));
  }

  function streamCard(stream) {
    const all = Object.fromEntries([stream.champion, ...stream.challengers].map((model) => [model, stream.scores?.[model]]));
    const actions = (model) => (model === stream.champion ? h('span', { class: 'quiet' }, 'answers now') : h('div', { class: 'row' },
      button('Promote', () => promote(stream, model), `Promote ${model}`),
      button('Retire', () => retire(stream, model), `Retire ${model}`)));
    return h('section', { class: 'card' },
      h('h2', {}, `Stream ${stream.name}`),
      scores(all, stream.champion, { actions: admin && actions, caption: `Models of ${stream.name}; the last 500 rows of each series count most` }),
      admin && challenge(stream));
  }

  function modelTable() {
    const heads = ['Model', 'Target', 'Inputs', 'Intervals', 'Size', 'Used by', 'Fingerprint', ...(admin ? ['Actions'] : [])];
    const text = (...inside) => h('td', { class: 'text' }, ...inside);
    return grid('Model files of this service', heads, h('tbody', {}, models.map((model) => h('tr', {},
      h('th', { scope: 'row' }, model.name),
      text(model.target ?? '–'),
      text(model.inputs.length > 4 ? `${model.inputs.slice(0, 3).join(', ')} and ${model.inputs.length - 3} more` : model.inputs.join(', ') || 'none'),
      text(model.intervals ? 'yes' : 'no'),
      h('td', {}, bytes(model.bytes)),
      text(model.used_by.map((use) => `${use.stream} (${use.role})`).join(', ') || 'nothing'),
      text(h('code', {}, model.fingerprint.slice(0, 12))),
      admin && text(!model.used_by.length && button('Delete', () => remove(model.name), `Delete ${model.name}`))))),
    heads.filter((one) => one !== 'Size'));
  }

  function uploadForm() {
    const file = h('input', { type: 'file', accept: '.varnn', required: true, 'aria-label': 'Model file' });
    const name = h('input', { type: 'text', required: true, placeholder: 'Name', 'aria-label': 'Name of the model', maxlength: 100 });
    const button = h('button', { type: 'submit' }, 'Upload');
    file.addEventListener('change', () => {
      if (!name.value && file.files[0]) name.value = file.files[0].name.replace(/\.varnn$/, '');
    });
    return h('form', {
      class: 'row',
      onsubmit: async (event) => {
        event.preventDefault();
        button.disabled = true;
        say(button, 'Uploading …');
        await act(() => ask(paths.model(name.value.trim()), { method: 'PUT', body: file.files[0] }), `${name.value.trim()} is here now.`);
        button.disabled = false;
        say(button, 'Upload');
      },
    }, file, name, button);
  }

  async function refresh() {
    const [listed, files] = await Promise.all([ask('/v1/streams'), ask('/v1/models')]);
    const streams = await Promise.all(listed.map((stream) => ask(paths.stream(stream.name))));
    // Drawn anew only where something changed, and not under someone's hands: an open menu must not close.
    const now = JSON.stringify([streams, files]);
    if (now === last || streamsPlace.contains(document.activeElement)) return;
    last = now;
    models = files;
    streamsPlace.replaceChildren(...streams.map(streamCard));
    modelsPlace.replaceChildren(modelTable());
  }

  put(
    h('h1', {}, 'Models'),
    message,
    streamsPlace,
    h('section', { class: 'card' }, h('h2', {}, 'Model files'), modelsPlace,
      admin ? uploadForm() : h('p', { class: 'quiet' }, 'Your login reads only: uploading and promoting need a token of scope admin.')));
  await refresh();
  return every(5, () => refresh().catch(() => {}));
}
