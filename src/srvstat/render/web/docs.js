/* The page `/docs`: the operations and schemas of openapi.json, and forms that send requests. */

import { create } from './elements.js';
import { describeFailure, formatCurl, formatResponse, send } from './exchange.js';

const LIMITS = ['format', 'pattern', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'default'];
const ANY_KEY = 'docs';

const api = await (await fetch('openapi.json')).json();
const find = (id) => document.getElementById(id);
/* The service leaves it out if any key is valid. */
const keyForm = find('key-form');
let key = keyForm ? '' : ANY_KEY;
/* Functions that put identifiers of the snapshot into the examples. */
const examples = [];

const getName = ($ref) => $ref.split('/').at(-1);
const resolve = (one) => (one.$ref
  ? { ...one.$ref.slice(2).split('/').reduce((at, name) => at[name], api), ...one }
  : one);

const renderText = (text) => text.split(/`([^`]+)`/).map((part, n) => (
  n % 2 ? create('code', { textContent: part }) : part));

/* Return a table from arrays of cells, each an array of nodes. */
function createTable(names, rows) {
  const headings = names.map((textContent) => create('th', { scope: 'col', textContent }));
  const body = rows.map((cells) => create('tr', {}, ...cells.map((cell) => create('td', {}, ...cell))));
  return create('div', { className: 'scroll', tabIndex: 0 }, create(
    'table', {}, create('thead', {}, create('tr', {}, ...headings)), create('tbody', {}, ...body)));
}

/* Render the Markdown of the document: headings, tables, lists and paragraphs, with code in them. */
function renderMarkdown(text = '') {
  const item = /^(?:-|\d+\.) /;
  return text.trim().split(/\n{2,}/).map((block) => {
    if (block.startsWith('## ')) return create('h2', {}, ...renderText(block.slice(3)));
    if (block.startsWith('|')) {
      const [head, , ...rows] = block.split('\n').map((line) => line.slice(1, -1).split('|'));
      return createTable(head, rows.map((row) => row.map((cell) => renderText(cell.trim()))));
    }
    if (!item.test(block)) return create('p', {}, ...renderText(block));
    const items = block.split(/\n(?=-|\d+\. )/).map((one) => renderText(one.replace(item, '')));
    return create(block[0] === '-' ? 'ul' : 'ol', {}, ...items.map((one) => create('li', {}, ...one)));
  });
}

function renderType(schema) {
  const { $ref, type, items, enum: values } = schema;
  if ($ref) return [create('a', { href: `#${getName($ref)}`, textContent: getName($ref) })];
  if (items) return ['array of ', ...renderType(items)];
  const allowed = values ?? ('const' in schema ? [schema.const] : []);
  const texts = allowed.length ? allowed.map((value) => JSON.stringify(value)) : [type].flat();
  return [create('code', { textContent: texts.join(' | ') })];
}

/* Return the cells of a field or a parameter: its name, its type, and what it means. */
function renderField(name, schema, description = '', isOptional = false) {
  const limits = LIMITS.filter((limit) => limit in schema).map((limit) => `${limit} ${schema[limit]}`);
  return [
    [create('code', { textContent: name }), ...(isOptional ? [' optional'] : [])],
    renderType(schema),
    [...renderText(description), ...limits.map((limit) => create('span', { className: 'note', textContent: limit }))],
  ];
}

const renderFields = ({ properties, required = [] }) => createTable(
  ['Field', 'Type', 'Meaning'], Object.entries(properties).map(([name, schema]) => (
    renderField(name, schema, schema.description, !required.includes(name)))));

function renderSchema([name, schema]) {
  const title = create('h3', { textContent: name });
  const description = create('p', {}, ...renderText(schema.description));
  const content = schema.properties ? renderFields(schema) : create('p', {}, ...renderType(schema));
  return create('section', { id: name, className: 'schema' }, title, description, content);
}

/* Return the fields of a form for the parameters, and for the body of a request. */
function createInputs(id, parameters, body) {
  const fields = parameters.map(({ name, schema, example }) => {
    const { enum: values } = resolve(schema);
    const input = create(values ? 'select' : 'input', { name, id: `${id}-${name}` });
    if (values) input.append(...values.map((value) => create('option', { textContent: value })));
    else Object.assign(input, { type: 'text', spellcheck: false, value: example });
    if (name === 'identifier') examples.push((ids) => { [input.value] = ids; });
    return create('div', {}, create('label', { htmlFor: input.id, textContent: name }), input);
  });
  if (!body) return fields;
  const text = create('textarea', { name: 'body', id: `${id}-body`, rows: 18, spellcheck: false });
  const fill = (value) => { text.value = JSON.stringify(value, null, 2); };
  const [{ value }] = Object.values(body.examples);
  fill(value);
  examples.push((ids) => {
    if (ids.length < 2) return;
    fill({ servers: ids.slice(0, 3).map((identifier) => ({ identifier, by: 'id' })), range: '7d' });
  });
  return [create('div', {}, create('label', { htmlFor: text.id, textContent: 'Body' }), text)];
}

/* Return the form that sends a request of an operation, and shows the response. */
function createForm(id, method, path, parameters, body) {
  const [curl, shown] = ['Command', 'Response'].map((ariaLabel) => (
    create('pre', { tabIndex: 0, role: 'group', ariaLabel, className: ariaLabel.toLowerCase() })));
  shown.ariaLive = 'polite';
  const form = create('form', { className: 'try' });
  const build = () => {
    const values = new FormData(form);
    const target = path.slice(1).replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values.get(name)));
    const query = parameters.filter((one) => one.in === 'query').map(({ name }) => `${name}=${values.get(name)}`);
    return {
      method, target: query.length ? `${target}?${query.join('&')}` : target, body: values.get('body') ?? undefined,
    };
  };
  const showCommand = () => { curl.textContent = formatCurl(build(), keyForm ? null : key); };
  form.append(
    ...createInputs(id, parameters, body), create('button', { type: 'submit', textContent: 'Send' }), curl, shown);
  form.addEventListener('input', showCommand);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      shown.textContent = formatResponse(await send(build(), key), true);
    } catch (error) {
      shown.textContent = describeFailure(error, key);
    }
  });
  examples.push(showCommand);
  showCommand();
  return form;
}

function renderOperation(path, method, operation, { parameters = [], head }) {
  const own = [...parameters, ...(operation.parameters ?? [])].map(resolve);
  const body = operation.requestBody?.content['application/json'];
  const responses = Object.entries(operation.responses).map(([status, one]) => {
    const { description, content } = resolve(one);
    const schema = content?.['application/json'].schema;
    return [[create('code', { textContent: status })], renderText(description), schema ? renderType(schema) : []];
  });
  const fields = own.map(({ name, schema, description, required }) => (
    renderField(name, { ...resolve(schema), ...schema }, description, !required)));
  const says = [
    ...renderMarkdown(operation.description),
    ...(method === 'get' && head ? renderMarkdown(`HEAD: ${head.description}`) : []),
    ...(fields.length ? [createTable(['Parameter', 'Type', 'Meaning'], fields)] : []),
    ...(body ? [create('p', {}, 'The body is a ', ...renderType(body.schema), '.')] : []),
    createTable(['Status', 'Meaning', 'Body'], responses),
  ];
  const title = create('h2', {}, operation.summary, create('code', { textContent: `${method.toUpperCase()} ${path}` }));
  const form = createForm(operation.operationId, method.toUpperCase(), path, own, body);
  return create(
    'section', { id: operation.operationId, className: 'operation' }, title,
    create('div', { className: 'sides' }, create('div', {}, ...says), form));
}

/* Put identifiers of the snapshot that is served into the examples. */
async function loadExamples() {
  const { json } = await send({ method: 'GET', target: 'docs/servers' }, key);
  if (json?.ids?.length) examples.forEach((fill) => fill(json.ids));
}

const operations = Object.entries(api.paths).flatMap(([path, methods]) => (
  ['get', 'post'].filter((method) => method in methods)
    .map((method) => renderOperation(path, method, methods[method], methods))));
const [start, ...rules] = api.info.description.split(/\n(?=## )/);
find('docs').append(
  ...renderMarkdown(start).slice(0, 1), ...operations, ...rules.flatMap(renderMarkdown),
  create('h2', { textContent: 'Schemas' }), ...Object.entries(api.components.schemas).map(renderSchema));
keyForm?.addEventListener('submit', (event) => {
  event.preventDefault();
  key = find('key').value.trim();
  loadExamples();
});
if (key) loadExamples();
