/* The forms of the page `/docs`, which send requests; docs/api_page.py builds the page. */

import { describeFailure, formatCurl, formatResponse, send } from './exchange.js';

const ANY_KEY = 'docs';

const forms = [...document.querySelectorAll('.try')];
/* The service leaves it out if any key is valid. */
const keyForm = document.getElementById('key-form');
let key = keyForm ? '' : ANY_KEY;

function buildRequest(form) {
  const { method, path } = form.dataset;
  const { identifier, by, body } = Object.fromEntries(new FormData(form));
  const target = path.slice(1).replace('{identifier}', encodeURIComponent(identifier ?? ''));
  return { method, target: by ? `${target}?by=${by}` : target, body };
}

function showCommand(form) {
  form.querySelector('.command').textContent = formatCurl(buildRequest(form), keyForm ? null : key);
}

async function submit(form) {
  const shown = form.querySelector('.response');
  try {
    shown.textContent = formatResponse(await send(buildRequest(form), key), true);
  } catch (error) {
    shown.textContent = describeFailure(error, key);
  }
}

/* Put identifiers of the snapshot that is served into the examples. */
async function loadExamples() {
  const { json } = await send({ method: 'GET', target: 'docs/servers' }, key);
  const ids = json?.ids ?? [];
  if (!ids.length) return;
  for (const input of document.querySelectorAll('[name=identifier]')) [input.value] = ids;
  const servers = ids.slice(0, 3).map((identifier) => ({ identifier, by: 'id' }));
  for (const text of ids.length > 1 ? document.querySelectorAll('[name=body]') : []) {
    text.value = JSON.stringify({ servers, range: '7d' }, null, 2);
  }
  forms.forEach(showCommand);
}

for (const form of forms) {
  form.addEventListener('input', () => showCommand(form));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit(form);
  });
  showCommand(form);
}
keyForm?.addEventListener('submit', (event) => {
  event.preventDefault();
  key = document.getElementById('key').value.trim();
  loadExamples();
});
if (key) loadExamples();
