'use strict';

/* Draw the document `timeline` as a line chart that can be zoomed, with timeline.js and picture.js.
   A view is an interval of time; the picture shows the whole bins of timeline.js that it has a part
   of. A cursor is an instant. */
globalThis.srvstatChart = (() => {
  const { createSteps, nameServers, formatInterval, formatFigures } = globalThis.srvstatTimeline;
  const { Picture } = globalThis.srvstatPicture;

  const FEWEST_STEPS = 6;
  const FEWEST_PANELS = 4;
  const SHORTEST_DRAG = 6;
  const PRINTED_WIDTH = 680;
  const COLUMNS = ['average', 'lowest', 'peak', 'observations'];
  const HINT = 'Zoom: drag with the mouse, pinch, or Ctrl + wheel. Show all: double-click.'
    + ' Keys: ← → move, + − zoom, Shift + ← → scroll, Home, End, Esc to show all.';
  let hintCount = 0;

  function add(parent, name, attributes = {}, text = '') {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return parent.appendChild(element);
  }
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  /* Replace the content of `container`, unless that fails.

     A table with a row for each server, as reports have it, becomes the legend: its names hide the
     lines of servers, and it shows the figures at the cursor. The chart begins with `view`, and calls
     `onView` with each later one, or null for all. */
  function mount(container, timeline, { table, view, onView }) {
    new Chart(container, table).start(timeline, view, onView);
  }

  class Chart {
    constructor(container, table) {
      this.container = container;
      this.caption = table.caption;
      this.whole = this.caption.textContent;
      this.rows = [...table.tBodies[0].rows].map((row) => {
        const name = row.querySelector('.server');
        const button = add(name.parentElement, 'button', { type: 'button', class: 'server', 'aria-pressed': true });
        button.append(...name.childNodes);
        name.remove();
        const cells = COLUMNS.map((column) => row.querySelector(`[data-figure=${column}] data`));
        return { row, button, part: add(button.parentElement, 'span', { class: 'part' }), cells };
      });
    }

    start(timeline, view, onView = () => {}) {
      this.steps = createSteps(timeline);
      const { clock, start, end } = this.steps;
      const [firstYear, lastYear] = [start, end].map((at) => new Date(clock.toLocal(at)).getUTCFullYear());
      this.hasYear = firstYear !== lastYear;
      this.servers = timeline.servers;
      this.names = nameServers(timeline.servers);
      this.shown = this.names.map(() => true);
      this.view = { from: start, to: end };
      this.cursor = null;
      this.build();
      this.draw(this.container.clientWidth);
      this.container.replaceChildren(this.root);
      this.listen();
      if (view) this.setView(view.from, view.to);
      this.onView = onView;
    }

    build() {
      hintCount += 1;
      const hint = `chart-hint-${hintCount}`;
      this.root = document.createElement('div');
      this.root.className = 'chart';
      const group = add(this.root, 'div', { class: 'chart-buttons', role: 'group', 'aria-label': 'View' });
      const addButton = (text, label, act) => {
        const button = add(group, 'button', { type: 'button', 'aria-label': label, title: label }, text);
        button.addEventListener('click', act);
        return button;
      };
      if (this.servers.length >= FEWEST_PANELS) {
        const panels = addButton('Panels', 'A panel for each server', () => {
          this.hasPanels = !this.hasPanels;
          panels.setAttribute('aria-pressed', this.hasPanels);
          this.draw();
        });
        panels.setAttribute('aria-pressed', false);
      }
      addButton('+', 'Zoom in', () => this.zoom(1 / 2));
      this.outward = [
        addButton('−', 'Zoom out', () => this.zoom(2)),
        addButton('All', 'Show all', () => this.showAll()),
      ];
      this.plot = add(this.root, 'div', {
        class: 'chart-plot', tabindex: '0', role: 'application', 'aria-describedby': hint,
      });
      this.picture = new Picture(this.plot, this.steps, this.names);
      this.live = add(this.root, 'p', { class: 'chart-live', 'aria-live': 'polite' });
      add(this.root, 'p', { class: 'chart-hint', id: hint }, HINT);
    }

    toggle(button, n) {
      this.shown[n] = !this.shown[n];
      button.setAttribute('aria-pressed', this.shown[n]);
      this.draw();
    }

    draw(width = this.picture.width) {
      const { picture, view } = this;
      picture.draw(view, this.shown, width, this.hasPanels);
      this.plot.setAttribute('aria-label', `Players over time, ${this.format(picture)}`);
      for (const button of this.outward) button.setAttribute('aria-disabled', this.isAll());
      this.showCursor();
    }

    isAll() {
      return this.view.to - this.view.from >= this.steps.end - this.steps.start;
    }

    format({ from, to }) {
      return formatInterval(this.steps.clock, from, to, this.hasYear);
    }

    /* Return the bin at the cursor, or undefined. */
    findBin() {
      const { cursor } = this;
      return this.picture.bins.find(({ from, to }) => cursor !== null && cursor >= from && cursor < to);
    }

    /* Format the interval of a bin, and say if all that is shown is part of it only. */
    formatBin(bin) {
      const shown = bin.figures.filter(({ average }, n) => this.shown[n] && average !== null);
      const isPartial = shown.length && shown.every((figures) => figures.isPartial);
      return isPartial ? `${this.format(bin)}, part of ${this.picture.stepName}` : this.format(bin);
    }

    showCursor() {
      const { bins, stepName } = this.picture;
      const bin = this.findBin();
      const label = bin ? this.formatBin(bin) : this.format(this.picture);
      if (bin) this.picture.markBin(bin, label);
      else this.picture.clearMarks();
      const { from, to } = bin || this.picture;
      const isAll = !bin && this.isAll();
      this.caption.textContent = isAll ? this.whole : label;
      this.root.dataset.from = new Date(from).toISOString();
      this.root.dataset.to = new Date(to).toISOString();
      this.rows.forEach(({ row, part, cells }, n) => {
        const figures = bin ? bin.figures[n] : this.steps.merge(n, bins[0].first, bins.at(-1).last);
        const isPartial = bin && figures.average !== null && figures.isPartial;
        // A page can hide what is known of the whole window only.
        row.className = `${isAll ? '' : 'inside'}${isPartial ? ' partial' : ''}`;
        part.textContent = isPartial ? `part of ${stepName}` : '';
        const texts = formatFigures(figures);
        COLUMNS.forEach((column, at) => {
          row.dataset[column] = figures[column] ?? '';
          if (!cells[at]) return;
          cells[at].textContent = texts[column];
          if ('value' in cells[at]) cells[at].value = row.dataset[column];
        });
      });
    }

    /* Say the figures at the cursor. */
    announceFigures() {
      const bin = this.findBin();
      const part = `part of ${this.picture.stepName}`;
      const describe = (figures, n) => {
        const { average, lowest, peak, observations } = formatFigures(figures);
        const name = this.picture.hasBand ? '' : `${this.names[n]}: `;
        const noun = figures.observations === 1 ? 'observation' : 'observations';
        return figures.average !== null
          ? `${name}${figures.isPartial ? `${part}, ` : ''}average ${average}, ${lowest} to ${peak}, ${observations} ${noun}`
          : `${name}no ${noun}`;
      };
      const texts = bin.figures.map(describe).filter((_, n) => this.shown[n]);
      this.live.textContent = `${this.format(bin)}: ${texts.join('; ') || 'all servers are hidden'}`;
    }

    announceView() {
      this.live.textContent = `The chart shows ${this.format(this.picture)}`;
    }

    setView(from, to) {
      const { start, end, shortest } = this.steps;
      const length = clamp(to - from, Math.min(FEWEST_STEPS * shortest, end - start), end - start);
      const first = clamp((from + to - length) / 2, start, end - length);
      this.view = { from: first, to: first + length };
      this.draw();
      this.onView?.(length < end - start ? this.view : null);
    }

    showAll() {
      this.cursor = null;
      this.setView(this.steps.start, this.steps.end);
      this.announceView();
    }

    /* Make the view `factor` times as long; the instant at `center` keeps its place. */
    zoom(factor, center = this.findBin() ? this.cursor : (this.view.from + this.view.to) / 2) {
      const { from, to } = this.view;
      this.setView(center - (center - from) * factor, center + (to - center) * factor);
      this.announceView();
    }

    scroll(share) {
      const { from, to } = this.view;
      const distance = clamp(share * (to - from), this.steps.start - from, this.steps.end - to);
      this.setView(from + distance, to + distance);
      this.announceView();
    }

    /* Move the cursor to an instant, and scroll to it if it is outside of the picture. */
    moveTo(at) {
      this.cursor = this.clampInstant(at);
      if (!this.findBin()) this.scroll(this.cursor < this.view.from ? -1 / 4 : 1 / 4);
      this.showCursor();
      this.announceFigures();
    }

    clampInstant(at) {
      return clamp(at, this.steps.start, this.steps.end - 1);
    }

    press(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const bin = this.findBin();
      const [start, end] = [this.picture.from, this.picture.to - 1];
      const acts = {
        ArrowLeft: () => (event.shiftKey ? this.scroll(-1 / 4) : this.moveTo(bin ? bin.from - 1 : end)),
        ArrowRight: () => (event.shiftKey ? this.scroll(1 / 4) : this.moveTo(bin ? bin.to : start)),
        Home: () => this.moveTo(start),
        End: () => this.moveTo(end),
        '+': () => this.zoom(1 / 2),
        '=': () => this.zoom(1 / 2),
        '-': () => this.zoom(2),
        Escape: () => this.showAll(),
      };
      if (!Object.hasOwn(acts, event.key)) return;
      event.preventDefault();
      acts[event.key]();
    }

    listen() {
      const on = (target, name, act, options) => target.addEventListener(name, act, options);
      on(this.plot, 'keydown', (event) => this.press(event));
      on(this.plot, 'wheel', (event) => this.turnWheel(event), { passive: false });
      on(this.plot, 'dblclick', () => this.showAll());
      this.pointers = new Map();
      on(this.plot, 'pointerdown', (event) => this.startDrag(event));
      on(this.plot, 'pointermove', (event) => this.movePointer(event));
      on(this.plot, 'pointerup', (event) => this.endDrag(event));
      on(this.plot, 'pointercancel', (event) => this.endDrag(event));
      on(this.plot, 'pointerleave', (event) => this.leave(event));
      this.rows.forEach(({ row, button }, n) => {
        on(button, 'click', () => this.toggle(button, n));
        for (const name of ['pointerenter', 'focusin']) on(row, name, () => this.picture.focus(n));
        for (const name of ['pointerleave', 'focusout']) on(row, name, () => this.picture.focus(null));
      });
      on(window, 'beforeprint', () => this.prepareForPrint());
      on(window, 'afterprint', () => this.draw(this.plot.clientWidth));
      new ResizeObserver(() => {
        const width = this.plot.clientWidth;
        if (width && width !== this.picture.width) this.draw(width);
      }).observe(this.plot);
    }

    prepareForPrint() {
      this.cursor = null;
      this.draw(PRINTED_WIDTH);
    }

    findPointer(event) {
      const { left, right } = this.picture;
      return clamp(event.clientX - this.plot.getBoundingClientRect().left, left, right - 0.1);
    }

    turnWheel(event) {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(2 ** clamp(event.deltaY / 100, -1, 1), this.picture.findInstant(this.findPointer(event)));
    }

    startDrag(event) {
      if (event.button) return;
      const x = this.findPointer(event);
      this.pointers.set(event.pointerId, { x, start: x, at: this.picture.findInstant(x) });
      this.plot.setPointerCapture(event.pointerId);
      this.movePointer(event);
    }

    /* A mouse selects an interval, a finger moves the cursor, two fingers zoom. */
    movePointer(event) {
      const x = this.findPointer(event);
      const pointer = this.pointers.get(event.pointerId);
      if (pointer) pointer.x = x;
      if (this.pointers.size === 2) {
        this.pinch();
      } else if (pointer && event.pointerType === 'mouse' && Math.abs(x - pointer.start) >= SHORTEST_DRAG) {
        this.picture.markSelection(pointer.start, x);
      } else {
        this.cursor = this.clampInstant(this.picture.findInstant(x));
        this.showCursor();
        const height = event.clientY - this.plot.getBoundingClientRect().top;
        this.picture.focus(this.picture.findNearest(this.findBin(), height));
      }
    }

    /* Set the view in which both fingers are at the instants at which they started. */
    pinch() {
      const [one, other] = [...this.pointers.values()].sort((a, b) => a.at - b.at);
      if (other.x - one.x < SHORTEST_DRAG) return;
      const { left, right } = this.picture;
      const perPixel = (other.at - one.at) / (other.x - one.x);
      const from = one.at - (one.x - left) * perPixel;
      this.setView(from, from + (right - left) * perPixel);
    }

    endDrag(event) {
      const pointer = this.pointers.get(event.pointerId);
      this.pointers.delete(event.pointerId);
      if (!pointer || event.type === 'pointercancel' || event.pointerType !== 'mouse') return;
      if (Math.abs(pointer.x - pointer.start) < SHORTEST_DRAG) return;
      const [from, to] = [pointer.at, this.picture.findInstant(pointer.x)].sort((one, next) => one - next);
      this.cursor = null;
      this.setView(from, to);
      this.announceView();
    }

    leave(event) {
      if (this.pointers.size || event.pointerType !== 'mouse') return;
      this.cursor = null;
      this.picture.focus(null);
      this.showCursor();
    }
  }

  return { mount };
})();
