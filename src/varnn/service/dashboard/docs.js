// The description of the API, openapi.json, as a page that needs nothing from outside.
import { ask } from './api.js';
import { h, notice } from './dom.js';

const METHODS = ['get', 'put', 'post', 'delete', 'patch'];
const main = document.getElementById('main');

/** Follow a reference into the same document. */
function resolved(root, part) {
  if (!part?.$ref) return part ?? {};
  return part.$ref.replace(/^#\//, '').split('/').reduce((at, name) => at?.[name], root) ?? {};
}

const nameOf = (schema) => schema?.$ref?.split('/').at(-1);

/** A schema in a few words: "list of Message", "text", "number or null". */
function kind(schema) {
  if (!schema) return '';
  if (schema.$ref) return nameOf(schema);
  const some = schema.anyOf ?? schema.oneOf;
  if (some) return some.map(kind).join(' or ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(' or ');
  if (schema.type === 'array') return `list of ${kind(schema.items) || 'anything'}`;
  return Array.isArray(schema.type) ? schema.type.join(' or ') : schema.type ?? 'anything';
}

function fields(schema) {
  const entries = Object.entries(schema.properties ?? {});
  return entries.length > 0 && h('dl', { class: 'facts' }, entries.map(([name, one]) => h('div', {},
    h('dt', {}, h('code', {}, name), schema.required?.includes(name) ? ' (needed)' : ''),
    h('dd', {}, kind(one), one.description ? `: ${one.description}` : ''))));
}

function bodies(root, content) {
  return Object.entries(content ?? {}).map(([type, one]) => h('div', {},
    h('p', {}, h('code', {}, type), ' ', kind(one.schema)),
    !nameOf(one.schema) && fields(resolved(root, one.schema)),
    one.example !== undefined && h('pre', { tabindex: 0 }, typeof one.example === 'string' ? one.example : JSON.stringify(one.example, null, 2))));
}

function operation(root, path, method, given) {
  const parameters = (given.parameters ?? []).map((one) => resolved(root, one));
  const body = resolved(root, given.requestBody);
  return h('details', { class: 'card operation' },
    h('summary', {}, h('span', { class: `method ${method}` }, method.toUpperCase()), ' ', h('code', {}, path), ' ',
      h('span', { class: 'quiet' }, given.summary ?? '')),
    given.description && h('p', {}, given.description),
    parameters.length > 0 && [h('h3', {}, 'Parameters'), h('dl', { class: 'facts' }, parameters.map((one) => h('div', {},
      h('dt', {}, h('code', {}, one.name), ` (${one.in}${one.required ? ', needed' : ''})`),
      h('dd', {}, kind(one.schema), one.description ? `: ${one.description}` : ''))))],
    body.content && [h('h3', {}, 'Body'), bodies(root, body.content)],
    h('h3', {}, 'Answers'), Object.entries(given.responses ?? {}).map(([status, one]) => {
      const answer = resolved(root, one);
      return h('div', {}, h('p', {}, h('strong', {}, status), ` ${answer.description ?? ''}`), bodies(root, answer.content));
    }));
}

try {
  const root = await ask('/v1/openapi.json');
  main.replaceChildren(
    h('h1', {}, `${root.info.title} ${root.info.version}`),
    root.info.description ? h('p', {}, root.info.description) : '',
    ...Object.entries(root.paths).flatMap(([path, item]) => METHODS.filter((one) => item[one])
      .map((method) => operation(root, path, method, item[method]))),
    h('h2', {}, 'Shapes'),
    ...Object.entries(root.components?.schemas ?? {}).map(([name, schema]) => h('details', { class: 'card operation' },
      h('summary', {}, h('code', {}, name)), schema.description ? h('p', {}, schema.description) : '', fields(schema) || h('p', {}, kind(schema)))));
} catch (error) {
  main.replaceChildren(notice(error.message, { bad: true, retry: () => location.reload() }));
}
