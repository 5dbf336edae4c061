/* The requests of the page: build them, send them, and show them and their responses exactly. */

const KEY_HEADER = 'X-Gateway-Key';
const JSON_HEADER = 'Content-Type: application/json';
const SHOWN_HEADERS = [
  'allow', 'cache-control', 'content-length', 'content-type', 'retry-after', 'www-authenticate',
  'x-request-id',
];

const findUrl = (target) => new URL(target, document.baseURI);
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/* Return the request of the API about servers: Get Server for one, Compare Servers for more. */
export function buildRequest(ids, range) {
  if (ids.length === 1) return { method: 'GET', target: `gateway/v1/servers/${encodeURIComponent(ids[0])}` };
  const servers = ids.map((identifier) => ({ identifier, by: 'id' }));
  return { method: 'POST', target: 'gateway/v1/compare', body: JSON.stringify({ servers, range }) };
}

/* Return the request for data of the page itself; an array gives its parameter several times. */
export function buildQuestion(name, parameters) {
  const pairs = Object.entries(parameters).flatMap(([key, values]) => (
    [values].flat().map((value) => `${key}=${encodeURIComponent(value)}`)));
  return { method: 'GET', target: `explore/data/${name}?${pairs.join('&')}` };
}

/* Return the response; `json` is undefined if the body is not JSON.

   Throws an AbortError, or a TypeError if the service can't be reached. */
export async function send({ method, target, body }, key, signal) {
  const headers = { [KEY_HEADER]: key };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const options = { method, headers, body, signal, cache: 'no-store', redirect: 'error' };
  const response = await fetch(findUrl(target), options);
  const bytes = await response.arrayBuffer();
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  const { ok, status, statusText } = response;
  return { ok, status, statusText, headers: response.headers, text, json: parse(text) };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/* Format a request as it is sent; the address is normalized, as browsers and curl do it. */
export function formatRequest({ method, target, body }, key) {
  const url = findUrl(target);
  const lines = [`${method} ${url.pathname}${url.search}`, `Host: ${url.host}`];
  if (body !== undefined) lines.push(JSON_HEADER);
  lines.push(`${KEY_HEADER}: ${key}`);
  return body === undefined ? lines.join('\n') : `${lines.join('\n')}\n\n${body}`;
}

/* Format a response as it was sent, or with an indented body. */
export function formatResponse({ status, statusText, headers, text, json }, isIndented) {
  const names = SHOWN_HEADERS.filter((name) => headers.has(name));
  const lines = names.map((name) => `${name}: ${headers.get(name)}`);
  return `${status} ${statusText}\n${lines.join('\n')}\n\n${isIndented && json ? JSON.stringify(json, null, 2) : text}`;
}

/* Return the command for a shell. Without a key, it takes the one in the variable KEY, so that no
   history keeps it. */
export function formatCurl({ target, body }, key) {
  const words = [`curl -sS ${quote(findUrl(target).href)}`];
  if (body !== undefined) words.push(`-H ${quote(JSON_HEADER)}`);
  words.push(key === null ? `-H "${KEY_HEADER}: $KEY"` : `-H ${quote(`${KEY_HEADER}: ${key}`)}`);
  if (body !== undefined) words.push(`--data-raw ${quote(body)}`);
  return words.join(' \\\n  ');
}

/* Return the command that gives the same answer from the snapshot. */
export function formatCommand(ids, range) {
  const words = ids.map((id) => (/^[\w.][\w.:-]*$/.test(id) ? id : quote(id)));
  const end = ids.some((id) => id.startsWith('-')) ? '-- ' : '';
  return ids.length > 1
    ? `srvstat compare --range ${range} ${end}${words.join(' ')}`
    : `srvstat get ${end}${words[0]}`;
}

export function describeError({ status, statusText, json }) {
  const error = json?.error;
  return error ? `${status} ${error.code}: ${error.message}` : `${status} ${statusText}`;
}

export const describeFailure = (error, key) => (
  /[^\t\x20-\x7e\x80-\xff]/u.test(key)
    ? 'The key has characters that a header can’t have.'
    : `The service can’t be reached (${error.message}).`);
