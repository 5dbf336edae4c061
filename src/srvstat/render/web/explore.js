/* The page of `srvstat serve --explore`. The fragment of the address is its state: a choice changes
   the fragment, and a changed fragment loads the answers. Tables come from the service as HTML, in which
   names of servers are escaped; the policy of the page forbids scripts in it. */

import { create, createMessage, format } from './elements.js';
import {
  buildQuestion, buildRequest, describeError, describeFailure, formatCommand, formatCurl,
  formatRequest, formatResponse, send,
} from './exchange.js';
import { mountSearch } from './search.js';

const DEFAULT_RANGE = '30d';
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'UTC';
const MAX_SERVERS = 5;
const ANY_KEY = 'explore';
const HIDDEN_KEY = '…';
const NO_KEY = 'Enter an API key first.';
const DOWNLOADS = { csv: ['csv', 'text/csv'], svg: ['picture', 'image/svg+xml'], png: ['picture'] };
/* What helps after an error, by its status; the seconds are those of Retry-After. */
const ADVICE = {
  400: () => 'Choose another time zone.',
  401: () => 'Enter another API key.',
  403: () => 'Choose a shorter range, or another API key. The page needs the raw history of the range, and of the time before it.',
  429: (seconds) => `Try again in ${seconds} seconds.`,
};

const find = (id) => document.getElementById(id);
const report = (...parts) => find('status').replaceChildren(...parts);

const ranges = [...document.querySelectorAll('#ranges input')];

/* The service leaves it out if any key is valid. */
const keyForm = find('key-form');
const needsKey = keyForm !== null;
let key = needsKey ? '' : ANY_KEY;
let loading = new AbortController();
/* The response of the API that is shown. */
let answer = null;

function readState() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const ids = [...new Set(parameters.getAll('id'))].slice(0, MAX_SERVERS);
  const range = ranges.find(({ value }) => value === parameters.get('range'))?.value ?? DEFAULT_RANGE;
  const [from, to] = ['from', 'to'].map((name) => Date.parse(parameters.get(name)));
  return { ids, range, tz: parameters.get('tz') ?? OWN_ZONE, view: from < to ? { from, to } : null };
}

function formatState({ ids, range, tz, view }) {
  const times = Object.entries(view ?? {}).map(([name, at]) => [name, `${new Date(at).toISOString().slice(0, 19)}Z`]);
  return `#${new URLSearchParams([...ids.map((id) => ['id', id]), ['range', range], ['tz', tz], ...times])}`;
}

const changeState = (change) => { location.hash = formatState({ ...readState(), ...change }); };

/* Choose a server, or remove it; return a note if that is not possible. */
function toggleServer(id) {
  const { ids } = readState();
  if (ids.includes(id)) changeState({ ids: ids.filter((other) => other !== id) });
  else if (ids.length < MAX_SERVERS) changeState({ ids: [...ids, id] });
  else return `At most ${MAX_SERVERS} servers can be compared; remove one first`;
  return '';
}

/* Load what the state asks for, unless a later choice aborts it. */
async function load() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  const state = readState();
  showChoice(state);
  if (!key) {
    report(createMessage(NO_KEY));
    return;
  }
  report('Loading…');
  document.body.setAttribute('aria-busy', 'true');
  const ask = (name, parameters) => send(buildQuestion(name, { ...parameters, range: state.range, tz: state.tz }), key, signal);
  try {
    await (state.ids.length ? loadAnswer : loadRanking)(state, ask, signal);
  } catch (error) {
    if (signal.aborted) return;
    reportError(describeFailure(error, key), ['Try again', load]);
  }
  document.body.removeAttribute('aria-busy');
}

/* Load the servers with the greatest averages; then the total of all. */
async function loadRanking({ range }, ask) {
  const ranking = await ask('ranking', {});
  show('ranking');
  find('ranking-title').textContent = `Servers by average, last ${range}`;
  if (!ranking.ok) {
    find('ranked').replaceChildren();
    explainError(ranking);
    return;
  }
  find('ranked').innerHTML = ranking.json.html;
  showSource(ranking.json);
  report('Loaded.');
  const network = await ask('network', {});
  find('network').innerHTML = network.ok ? network.text : '';
}

/* Load the answer of the API, and the table and the chart of the same servers. */
async function loadAnswer({ ids, range, view }, ask, signal) {
  const request = buildRequest(ids, range);
  const [response, overview] = await Promise.all([send(request, key, signal), ask('overview', { id: ids })]);
  answer = response;
  show('answer');
  find('request').textContent = formatRequest(request, needsKey ? HIDDEN_KEY : key);
  find('curl').textContent = formatCurl(request, needsKey ? null : key);
  find('command').textContent = formatCommand(ids, range);
  showResponse();
  find('figures').hidden = !overview.ok;
  if (overview.ok) showOverview(overview.json, view);
  const failed = [answer, overview].find(({ ok }) => !ok);
  if (failed) explainError(failed, failed === answer ? ids : [], overview.ok ? overview.json.timeline.servers : []);
  else report('Loaded.');
}

function show(id) {
  for (const name of ['ranking', 'answer']) find(name).hidden = name !== id;
}

function showResponse() {
  find('response').textContent = formatResponse(answer, find('formatted').checked);
}

function showOverview({ html, timeline, ...source }, view) {
  showSource(source);
  find('overview').innerHTML = html;
  const onView = (next) => history.replaceState(null, '', formatState({ ...readState(), view: next }));
  const table = find('overview').querySelector('table');
  globalThis.srvstatChart.mount(find('chart'), timeline, { table, view, onView });
  for (const row of table.tBodies[0].rows) {
    const id = row.dataset.server;
    const remove = create('button', { type: 'button', textContent: '×', className: 'remove', ariaLabel: `Remove ${id}` });
    remove.addEventListener('click', () => {
      toggleServer(id);
      find('text').focus();
    });
    row.querySelector('th').append(remove);
  }
}

/* Say what failed, which servers are unknown, and what to do. */
function explainError(response, ids = [], known = []) {
  const { status, headers } = response;
  const unknown = [400, 404].includes(status) ? ids.filter((id) => !known.some(({ serverId }) => serverId === id)) : [];
  if (!unknown.length) {
    reportError(`${describeError(response)}. ${ADVICE[status]?.(headers.get('retry-after')) ?? ''}`, ['Try again', load]);
    return;
  }
  const remove = () => changeState({ ids: ids.filter((id) => !unknown.includes(id)) });
  reportError(`${describeError(response)}. Not in this snapshot: ${unknown.join(', ')}.`, ['Remove', remove]);
}

function reportError(text, [label, onclick]) {
  const message = createMessage(text);
  message.append(' ', create('button', { type: 'button', textContent: label, onclick }));
  report(message);
}

function showChoice({ ids, range, tz }) {
  for (const input of ranges) input.checked = input.value === range;
  const zones = [...new Set([OWN_ZONE, 'UTC', tz])];
  find('zone').replaceChildren(...zones.map((value) => create('option', { value, textContent: value, selected: value === tz })));
  search.mark(ids);
}

async function askForServers(text, signal) {
  if (!key) return { servers: [], note: NO_KEY };
  try {
    const response = await send(buildQuestion('servers', { text }), key, signal);
    return response.ok ? readServers(response.json) : { servers: [], note: describeError(response) };
  } catch (error) {
    return { servers: [], note: describeFailure(error, key) };
  }
}

function readServers({ matched, servers, ...source }) {
  showSource(source);
  const count = servers.length < matched ? `${servers.length} of ${format(matched)}` : matched;
  const note = matched ? `${count} found; most players first` : 'No server has all of these words';
  return { servers, note };
}

/* Show the snapshot of the latest data: the service can switch to another one. */
function showSource({ asOf, root }) {
  find('source').textContent = `Snapshot as of ${asOf.slice(0, 16).replace('T', ' ')} UTC, root ${root.slice(0, 12)}…`;
}

/* Copying needs a secure context, which a host other than this machine is not. */
async function copy(id) {
  try {
    await navigator.clipboard.writeText(find(id).textContent);
    report('Copied.');
  } catch {
    getSelection().selectAllChildren(find(id));
    report('Selected; copy it with the keyboard.');
  }
}

/* Save the figures of the chart, or a picture of it. */
async function download(ending) {
  const { ids, range, tz } = readState();
  const [name, type] = DOWNLOADS[ending];
  const response = await send(buildQuestion(name, { id: ids, range, tz }), key);
  if (!response.ok) {
    explainError(response);
    return;
  }
  const file = type ? new Blob([response.text], { type }) : await drawBitmap(response.text);
  const href = URL.createObjectURL(file);
  create('a', { href, download: `players-${range}.${ending}` }).click();
  URL.revokeObjectURL(href);
}

async function drawBitmap(svg) {
  const image = create('img', { src: `data:image/svg+xml,${encodeURIComponent(svg)}` });
  await image.decode();
  const [width, height] = [2 * image.width, 2 * image.height];
  const canvas = create('canvas', { width, height });
  canvas.getContext('2d').drawImage(image, 0, 0, width, height);
  return new Promise((resolve) => { canvas.toBlob(resolve); });
}

const search = mountSearch(find('search'), { ask: askForServers, toggle: toggleServer, report });

find('ranges').addEventListener('change', ({ target }) => changeState({ range: target.value, view: null }));
find('curl-note').textContent = needsKey
  ? 'First, set the variable KEY to the API key.'
  : 'Without --access, the service accepts any key.';
keyForm?.addEventListener('submit', (event) => {
  event.preventDefault();
  key = find('key').value.trim();
  search.search();
  load();
});
find('zone').addEventListener('change', ({ target }) => changeState({ tz: target.value }));
find('formatted').addEventListener('change', showResponse);
for (const button of document.querySelectorAll('[data-copy]')) button.onclick = () => copy(button.dataset.copy);
for (const button of document.querySelectorAll('[data-save]')) button.onclick = () => download(button.dataset.save);
addEventListener('hashchange', load);
load();
(keyForm ? find('key') : find('text')).focus();
