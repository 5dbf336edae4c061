/* The search box: a list of servers below a text field, with the keys of a combobox. */

import { create, createName, format } from './elements.js';

const MS_BEFORE_SEARCH = 150;

const countPlayers = (count) => `${format(count)} ${count === 1 ? 'player' : 'players'}`;

/* Search in `field`. `ask(text, signal)` returns {servers, note}; `toggle(id)` chooses a server, or
   removes it from the choice, and returns a note if it can't. */
export function mountSearch(field, { ask, toggle, report }) {
  const [text, found, list, note] = ['input', '.found', 'ul', '.note'].map((one) => field.querySelector(one));
  let searching = new AbortController();
  let chosen = [];
  let timer = 0;
  let active = -1;
  /* Whether the list is not yet the one for the text; keys that choose from it wait until it is. */
  let isStale = false;
  let waitingKeys = [];

  const options = () => [...list.children];

  async function search() {
    clearTimeout(timer);
    searching.abort();
    searching = new AbortController();
    isStale = true;
    const { signal } = searching;
    const answer = await ask(text.value, signal);
    if (signal.aborted) return;
    list.replaceChildren(...answer.servers.map(createOption));
    show(answer.note);
    moveTo(-1);
    mark(chosen);
    isStale = false;
    waitingKeys.splice(0).forEach(useKey);
  }

  function show(message) {
    note.textContent = message;
    if (!found.hidden) report(message);
  }

  function choose(id) {
    const problem = toggle(id);
    if (problem) show(problem);
  }

  function createOption({ id, hostname, game, region, currentPlayers }, n) {
    const more = [id, game, region].filter(Boolean).join(' · ');
    const option = create(
      'li', { id: `result-${n}`, onclick: () => choose(id) },
      create('span', { className: 'name' }, createName(hostname.trim() || id)),
      create('span', { className: 'more' }, createName(more)),
      create('span', { className: 'count', textContent: countPlayers(currentPlayers) }));
    option.dataset.id = id;
    option.setAttribute('role', 'option');
    return option;
  }

  function mark(ids) {
    chosen = ids;
    for (const option of options()) option.setAttribute('aria-selected', ids.includes(option.dataset.id));
  }

  function moveTo(n) {
    active = n;
    for (const [at, option] of options().entries()) option.classList.toggle('active', at === n);
    const option = options()[n];
    option?.scrollIntoView({ block: 'nearest' });
    if (option) text.setAttribute('aria-activedescendant', option.id);
    else text.removeAttribute('aria-activedescendant');
  }

  function setOpen(isOpen) {
    found.hidden = !isOpen;
    waitingKeys = [];
    text.setAttribute('aria-expanded', isOpen);
  }

  /* Open the list for the present text. */
  function open() {
    if (!found.hidden) return;
    setOpen(true);
    search();
  }

  /* Search once nothing more is typed. */
  function searchSoon() {
    clearTimeout(timer);
    searching.abort();
    isStale = true;
    setOpen(true);
    note.textContent = 'Searching…';
    timer = setTimeout(search, MS_BEFORE_SEARCH);
  }

  /* Move in the list, or choose from it. */
  function useKey(key) {
    const count = options().length;
    if (!count) return;
    if (key === 'ArrowDown') moveTo((active + 1) % count);
    else if (key === 'ArrowUp') moveTo((active < 1 ? count : active) - 1);
    // Without a move, Enter takes the only server found.
    else if (active >= 0 || count === 1) choose(options()[Math.max(active, 0)].dataset.id);
    else moveTo(0);
  }

  function handleKey(event) {
    const { key } = event;
    const isArrow = key === 'ArrowDown' || key === 'ArrowUp';
    // The keys of an input method choose characters.
    if (event.isComposing) return;
    if (found.hidden && isArrow) open();
    else if (found.hidden) return;
    else if (key === 'Escape') setOpen(false);
    else if (!isArrow && key !== 'Enter') return;
    else if (isStale) waitingKeys.push(key);
    else useKey(key);
    event.preventDefault();
  }

  text.addEventListener('input', searchSoon);
  text.addEventListener('click', open);
  text.addEventListener('keydown', handleKey);
  list.addEventListener('mousedown', (event) => event.preventDefault());
  field.addEventListener('focusout', ({ relatedTarget }) => {
    if (!field.contains(relatedTarget)) setOpen(false);
  });
  // A tap on a screen does not always move the focus.
  addEventListener('pointerdown', ({ target }) => {
    if (!field.contains(target)) setOpen(false);
  });
  return { mark, search };
}
