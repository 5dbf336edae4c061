/* The page of `srvstat serve --explore`. The fragment of the address is its state: a choice changes
   the fragment, and a changed fragment loads the answers. */

import {
  create, createMessage, createName, createSwatch, describe, explainMissingChange, format, formatAverage,
  formatChange, formatFirstLast, formatWindowLength,
} from './elements.js';
import {
  buildQuestion, buildRequest, describeError, describeFailure, formatCurl, formatRequest,
  formatResponse, send,
} from './exchange.js';
import { mountSearch } from './search.js';

const RANGES = ['24h', '7d', '30d', '90d', '1y'];
const DEFAULT_RANGE = '30d';
const MAX_SERVERS = 5;
const ANY_KEY = 'explore';
const HIDDEN_KEY = '…';
const NO_KEY = 'Enter an API key first.';
const createFigure = (textContent) => create('td', { textContent });
/* The columns of the comparison, from a result of the API or, once it is there, from a server of the
   document `stats`. */
const COLUMNS = [
  ['Current', (result) => createFigure(format(result.currentPlayers))],
  ['Average', (result) => createFigure(formatAverage(result.averagePlayers))],
  ['Change', (result) => createStatistic(result.serverId, createChange)],
  ['Median', (result) => createFigure(format(result.medianPlayers))],
  ['Peak', (result) => createFigure(format(result.peakPlayers))],
  ['Lowest', (result) => createFigure(format(result.lowestPlayers))],
  ['First → last', (result) => createStatistic(result.serverId, createFirstLast)],
  ['Observations', (result) => createFigure(format(result.sampleCount))],
];

const find = (id) => document.getElementById(id);
const [table, chart] = ['table', 'chart'].map((id) => find(id).querySelector('.content'));
const changes = find('changes');
const report = (text) => { find('status').textContent = text; };

/* The service leaves it out if any key is valid. */
const keyForm = find('key-form');
const needsKey = keyForm !== null;
let key = needsKey ? '' : ANY_KEY;
/* The known hostnames by id. */
const hostnames = new Map();
/* The servers of the document `stats` by id, and the cells that wait for it. */
let statistics = new Map();
let waiting = [];
let loading = new AbortController();

function readState() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const ids = [...new Set(parameters.getAll('id'))].slice(0, MAX_SERVERS);
  const range = parameters.get('range');
  return { ids, range: RANGES.includes(range) ? range : DEFAULT_RANGE };
}

function changeState(change) {
  const { ids, range } = { ...readState(), ...change };
  location.hash = [...ids.map((id) => `id=${encodeURIComponent(id)}`), `range=${range}`].join('&');
}

/* Choose a server, or remove it; return a note if that is not possible. */
function toggleServer(id) {
  const { ids } = readState();
  if (ids.includes(id)) changeState({ ids: ids.filter((other) => other !== id) });
  else if (ids.length < MAX_SERVERS) changeState({ ids: [...ids, id] });
  else return `At most ${MAX_SERVERS} servers can be compared; remove one first`;
  return '';
}

/* Load the answers of the state. */
function load() {
  loading.abort();
  loading = new AbortController();
  const { ids, range } = readState();
  showChoice(ids, range);
  find('empty').hidden = ids.length > 0;
  find('answer').hidden = ids.length === 0;
  report('');
  if (!ids.length) return;
  const request = buildRequest(ids, range);
  find('table-title').textContent = ids.length > 1 ? `Comparison, last ${range}` : 'Server';
  find('chart-title').textContent = `Players, last ${range} (UTC)`;
  find('request').textContent = formatRequest(request, needsKey ? HIDDEN_KEY : key);
  find('curl').textContent = formatCurl(request, needsKey ? null : key);
  if (!key) {
    changes.replaceChildren();
    for (const content of [table, chart]) {
      content.replaceChildren(createMessage(NO_KEY));
      content.removeAttribute('aria-busy');
    }
    find('response').textContent = '';
    return;
  }
  report('Loading…');
  find('response').textContent = 'Loading…';
  [statistics, waiting] = [new Map(), []];
  loadInto(table, request, loading.signal, showAnswer);
  loadInto(changes, buildQuestion('stats', { id: ids, range }), loading.signal, showStatistics);
  loadInto(chart, buildQuestion('timeline', { id: ids, range }), loading.signal, showTimeline);
}

/* Send a request and show its response, unless a later choice has aborted it. */
async function loadInto(content, request, signal, show) {
  content.setAttribute('aria-busy', 'true');
  try {
    const response = await send(request, key, signal);
    if (signal.aborted) return;
    show(response);
  } catch (error) {
    if (signal.aborted) return;
    const message = describeFailure(error, key);
    content.replaceChildren(createMessage(message));
    if (content === table) {
      report(message);
      find('response').textContent = '';
    }
  }
  content.removeAttribute('aria-busy');
}

function showAnswer(response) {
  find('response').textContent = formatResponse(response);
  report(response.ok ? 'Loaded.' : describeError(response));
  table.replaceChildren(
    response.ok ? createTable(response.json.data) : createMessage(describeError(response)));
}

function showTimeline(response) {
  if (!response.ok) {
    const isForbidden = response.status === 403;
    const note = isForbidden ? 'A chart needs the range and its raw history in the plan.' : '';
    chart.replaceChildren(createMessage(describeError(response), note));
    return;
  }
  const timeline = response.json;
  showSource(timeline);
  rememberNames(timeline.servers.map(({ serverId, hostname }) => [serverId, hostname]));
  const container = create('div', {}, createMessage('The chart can’t be drawn.'));
  chart.replaceChildren(container);
  globalThis.srvstatChart.mount(container, timeline);
}

function createTable(data) {
  const built = Array.isArray(data) ? createComparison(data) : createDetail(data);
  const scroll = create('div', { className: 'scroll', tabIndex: 0 }, built);
  scroll.setAttribute('role', 'region');
  scroll.setAttribute('aria-label', 'Figures');
  return scroll;
}

function createComparison(results) {
  const names = ['Server', ...COLUMNS.map(([name]) => name)];
  const headings = names.map((textContent) => create('th', { scope: 'col', textContent }));
  const rows = results.map((result, n) => create(
    'tr', {}, create('th', { scope: 'row' }, createSwatch(n), createTitle(result.serverId)),
    ...COLUMNS.map(([, createCell]) => createCell(result))));
  const head = create('thead', {}, create('tr', {}, ...headings));
  return create('table', { className: 'figures' }, head, create('tbody', {}, ...rows));
}

function createDetail(server) {
  const rows = Object.entries(server).map(([name, value]) => create(
    'tr', {}, create('th', { scope: 'row', textContent: name }),
    create('td', {}, createName(describe(value)))));
  rows.unshift(create(
    'tr', {}, create('th', { scope: 'row', textContent: 'change' }),
    createStatistic(server.id, createChange)));
  return create('table', { className: 'detail' }, create('tbody', {}, ...rows));
}

/* Return a cell for a figure of the document `stats`. */
function createStatistic(id, createContent) {
  const cell = create('td', { textContent: '–' });
  waiting.push(() => {
    const server = statistics.get(id);
    if (server) cell.replaceChildren(createContent(server));
  });
  waiting.at(-1)();
  return cell;
}

function createChange({ change, averagePlayers }) {
  const textContent = formatChange(change, averagePlayers);
  const className = { '+': 'rise', '-': 'fall' }[textContent[0]] ?? '';
  return create('span', { className, textContent });
}

const createFirstLast = ({ firstPlayers, growth }) => formatFirstLast(firstPlayers, growth.players);

function showStatistics(response) {
  if (!response.ok) {
    const isForbidden = response.status === 403;
    const note = isForbidden
      ? 'A change needs the range in the plan, and the raw history of the time before.' : '';
    changes.replaceChildren(createMessage(describeError(response), note));
    return;
  }
  const { servers, window } = response.json;
  statistics = new Map(servers.map((server) => [server.serverId, server]));
  waiting.forEach((fill) => fill());
  const notes = servers.some(({ change }) => change)
    ? [`Change: the average against the ${formatWindowLength(window)} before. `] : [];
  const reasons = new Map();
  for (const server of servers.filter(({ change }) => !change)) {
    const reason = explainMissingChange(window, server);
    reasons.set(reason, [...(reasons.get(reason) ?? []), createName(server.hostname || server.serverId)]);
  }
  for (const [reason, names] of reasons) {
    const isForSome = names.length < servers.length;
    const whose = isForSome ? names.flatMap((name, n) => [n ? ', ' : ' for ', name]) : [];
    notes.push('No change', ...whose, `: ${reason}. `);
  }
  changes.replaceChildren(create('p', { className: 'note' }, ...notes));
}

/* Show a server by its hostname, once that is known, and its id. */
function createTitle(id) {
  const title = create('span', { className: 'title' });
  title.dataset.id = id;
  fillTitle(title);
  return title;
}

function fillTitle(title) {
  const { id } = title.dataset;
  const hostname = hostnames.get(id)?.trim();
  const parts = hostname && hostname !== id ? [createName(hostname), ' '] : [];
  title.replaceChildren(...parts, create('code', {}, createName(id)));
}

function rememberNames(pairs) {
  for (const [id, hostname] of pairs) hostnames.set(id, hostname);
  document.querySelectorAll('.title').forEach(fillTitle);
}

function showChoice(ids, range) {
  const chosen = find('chosen');
  const focused = [...chosen.querySelectorAll('button')].indexOf(document.activeElement);
  chosen.replaceChildren(...ids.map((id, n) => {
    const remove = create('button', { type: 'button', textContent: '×', onclick: () => toggleServer(id) });
    remove.setAttribute('aria-label', `Remove ${id}`);
    return create('li', {}, createSwatch(n), createTitle(id), remove);
  }));
  if (focused >= 0) {
    const left = chosen.querySelectorAll('button');
    (left[Math.min(focused, left.length - 1)] || find('text')).focus();
  }
  for (const input of find('ranges').querySelectorAll('input')) input.checked = input.value === range;
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
  rememberNames(servers.map(({ id, hostname }) => [id, hostname]));
  const count = servers.length < matched ? `${servers.length} of ${format(matched)}` : matched;
  const note = matched ? `${count} found; most players first` : 'No server has all of these words';
  return { servers, note };
}

/* Show the snapshot of the latest data: the service can switch to another one. */
function showSource({ asOf, root }) {
  const time = asOf.slice(0, 16).replace('T', ' ');
  find('source').textContent = `Snapshot as of ${time} UTC, root ${root.slice(0, 12)}…`;
}

/* Copying needs a secure context, which a host other than this machine is not. */
async function copyCurl() {
  try {
    await navigator.clipboard.writeText(find('curl').textContent);
    report('Copied.');
  } catch {
    getSelection().selectAllChildren(find('curl'));
    report('Selected; copy it with the keyboard.');
  }
}

const search = mountSearch(find('search'), { ask: askForServers, toggle: toggleServer, report });

find('ranges').append(...RANGES.map((value) => {
  const onchange = () => changeState({ range: value });
  const input = create('input', { type: 'radio', name: 'range', value, onchange });
  return create('label', {}, input, create('span', { textContent: value }));
}));
find('curl-note').textContent = needsKey
  ? 'First, set the variable KEY to the API key.'
  : 'Without --access, the service accepts any key.';
keyForm?.addEventListener('submit', (event) => {
  event.preventDefault();
  key = find('key').value.trim();
  search.search();
  load();
});
find('copy').addEventListener('click', copyCurl);
addEventListener('hashchange', load);
search.search();
load();
