'use strict';

/* Draw the document `timeline` as a line chart that can be zoomed, with timeline.js and picture.js.
   Steps are numbered. A view is an interval of steps, and a bin one of merged steps. */
globalThis.srvstatChart = (() => {
  const { createClock, createSteps, nameServers, formatInterval, formatFigures } = globalThis.srvstatTimeline;
  const { Picture, addSample } = globalThis.srvstatPicture;

  const FEWEST_STEPS = 6;
  const SHORTEST_DRAG = 6;
  const PRINTED_WIDTH = 680;
  const COLUMNS = ['average', 'lowest', 'peak', 'observations'];
  const HINT = 'Zoom: drag with the mouse, pinch, or Ctrl + wheel. Show all: double-click.'
    + ' Keys: ← → move, + − zoom, Shift + ← → scroll, Home, End, Esc to show all.';
  const charts = new WeakMap();
  let hintCount = 0;

  function add(parent, name, attributes = {}, text = '') {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return parent.appendChild(element);
  }
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  /* Replace the content of `container`. On an error, now or later, it gets its content back. */
  function mount(container, timeline, { timeZone }) {
    charts.get(container)?.restore();
    const chart = new Chart(container);
    charts.set(container, chart);
    chart.guard(() => chart.start(timeline, timeZone))();
  }

  class Chart {
    constructor(container) {
      this.container = container;
      this.replaced = [...container.childNodes];
      this.listening = new AbortController();
    }

    /* Return a function that acts, and on an error puts back what the chart has replaced. */
    guard(act) {
      return (...values) => {
        try {
          act(...values);
        } catch {
          this.restore();
        }
      };
    }

    restore() {
      this.listening.abort();
      this.observer?.disconnect();
      this.container.replaceChildren(...this.replaced);
      charts.delete(this.container);
    }

    start(timeline, timeZone) {
      const start = timeline.window.from || timeline.stepsFrom;
      this.hasYear = start.slice(0, 4) !== timeline.window.to.slice(0, 4);
      this.clock = createClock(timeZone);
      this.steps = createSteps(timeline);
      this.servers = timeline.servers;
      this.names = nameServers(timeline.servers);
      this.shown = this.names.map(() => true);
      this.view = { first: 0, last: this.steps.count };
      this.cursor = null;
      this.build();
      this.draw(this.container.clientWidth);
      this.container.replaceChildren(this.root);
      this.listen();
    }

    build() {
      hintCount += 1;
      const hint = `chart-hint-${hintCount}`;
      this.root = document.createElement('div');
      this.root.className = 'chart';
      const group = add(this.root, 'div', { class: 'chart-buttons', role: 'group', 'aria-label': 'Zoom' });
      const addButton = (text, label, act) => {
        const button = add(group, 'button', { type: 'button', 'aria-label': label, title: label }, text);
        button.addEventListener('click', this.guard(act));
        return button;
      };
      addButton('+', 'Zoom in', () => this.zoom(1 / 2));
      this.outward = [
        addButton('−', 'Zoom out', () => this.zoom(2)),
        addButton('All', 'Show all', () => this.showAll()),
      ];
      this.plot = add(this.root, 'div', {
        class: 'chart-plot', tabindex: '0', role: 'application', 'aria-describedby': hint,
      });
      this.picture = new Picture(this.plot, this.clock, this.steps);
      this.live = add(this.root, 'p', { class: 'chart-live', 'aria-live': 'polite' });
      this.buildTable();
      add(this.root, 'p', { class: 'chart-hint', id: hint }, HINT);
    }

    /* Build the legend, which has the figures at the cursor or, without one, of the whole view. */
    buildTable() {
      const table = add(this.root, 'table', { class: 'chart-figures' });
      this.caption = add(table, 'caption');
      const header = add(add(table, 'thead'), 'tr');
      for (const name of ['server', ...COLUMNS]) add(header, 'th', { scope: 'col' }, name);
      const body = add(table, 'tbody');
      this.rows = this.names.map((name, n) => {
        const row = add(body, 'tr', { 'data-server': this.servers[n].serverId });
        const cell = add(row, 'th', { scope: 'row' });
        const button = add(cell, 'button', { type: 'button', 'aria-pressed': true });
        addSample(button, n);
        add(button, 'bdi', { title: name }, name);
        button.addEventListener('click', this.guard(() => this.toggle(button, n)));
        return { row, cells: COLUMNS.map(() => add(row, 'td')) };
      });
    }

    toggle(button, n) {
      this.shown[n] = !this.shown[n];
      button.setAttribute('aria-pressed', this.shown[n]);
      this.draw();
    }

    draw(width = this.picture.width) {
      const { picture, view } = this;
      picture.draw(view, this.shown, width);
      this.plot.setAttribute('aria-label', `Players over time, ${this.format(picture)}`);
      const isAll = view.last - view.first >= this.steps.count;
      for (const button of this.outward) button.setAttribute('aria-disabled', isAll);
      this.showCursor();
    }

    format({ from, to }) {
      return formatInterval(this.clock, from, to, this.hasYear);
    }

    /* Return the bin at the cursor, or undefined. */
    findBin() {
      const { cursor } = this;
      return this.picture.bins.find(({ first, last }) => cursor !== null && cursor >= first && cursor < last);
    }

    showCursor() {
      const { bins } = this.picture;
      const [first, last] = [bins[0].first, bins[bins.length - 1].last];
      const bin = this.findBin();
      if (bin) this.picture.markBin(bin, this.format(bin));
      else this.picture.clearMarks();
      const { from, to } = bin || this.picture;
      this.caption.textContent = this.format({ from, to });
      this.root.dataset.from = new Date(from).toISOString();
      this.root.dataset.to = new Date(to).toISOString();
      this.rows.forEach(({ row, cells }, n) => {
        const figures = bin ? bin.figures[n] : this.steps.merge(n, first, last);
        const texts = formatFigures(figures);
        COLUMNS.forEach((column, at) => {
          row.dataset[column] = figures[column] ?? '';
          cells[at].textContent = texts[column];
        });
      });
    }

    /* Say the figures at the cursor. */
    announceFigures() {
      const bin = this.findBin();
      const describe = (figures, n) => {
        const { average, lowest, peak, observations } = formatFigures(figures);
        const name = this.picture.hasBand ? '' : `${this.names[n]}: `;
        const noun = figures.observations === 1 ? 'observation' : 'observations';
        return figures.observations
          ? `${name}average ${average}, ${lowest} to ${peak}, ${observations} ${noun}`
          : `${name}no ${noun}`;
      };
      const texts = bin.figures.map(describe).filter((_, n) => this.shown[n]);
      this.live.textContent = `${this.format(bin)}: ${texts.join('; ') || 'all servers are hidden'}`;
    }

    announceView() {
      this.live.textContent = `The chart shows ${this.format(this.picture)}`;
    }

    setView(first, last) {
      const { count } = this.steps;
      const length = clamp(last - first, Math.min(FEWEST_STEPS, count), count);
      const start = clamp((first + last - length) / 2, 0, count - length);
      this.view = { first: start, last: start + length };
      this.draw();
    }

    showAll() {
      this.cursor = null;
      this.setView(0, this.steps.count);
      this.announceView();
    }

    /* Make the view `factor` times as long; the step at `center` keeps its place. */
    zoom(factor, center = this.findBin() ? this.cursor : (this.view.first + this.view.last) / 2) {
      const { first, last } = this.view;
      this.setView(center - (center - first) * factor, center + (last - center) * factor);
      this.announceView();
    }

    scroll(share) {
      const { first, last } = this.view;
      const distance = clamp(share * (last - first), -first, this.steps.count - last);
      this.setView(first + distance, last + distance);
      this.announceView();
    }

    /* Move the cursor to a step, and scroll to it if it is outside of the picture. */
    moveTo(step) {
      this.cursor = clamp(step, 0, this.steps.count - 1);
      if (!this.findBin()) this.scroll(this.cursor < this.view.first ? -1 / 4 : 1 / 4);
      this.showCursor();
      this.announceFigures();
    }

    press(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { bins } = this.picture;
      const bin = this.findBin();
      const [start, end] = [bins[0].first, bins[bins.length - 1].last - 1];
      const acts = {
        ArrowLeft: () => (event.shiftKey ? this.scroll(-1 / 4) : this.moveTo(bin ? bin.first - 1 : end)),
        ArrowRight: () => (event.shiftKey ? this.scroll(1 / 4) : this.moveTo(bin ? bin.last : start)),
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
      const on = (target, name, act, options = {}) => (
        target.addEventListener(name, this.guard(act), { signal: this.listening.signal, ...options }));
      on(this.plot, 'keydown', (event) => this.press(event));
      on(this.plot, 'wheel', (event) => this.turnWheel(event), { passive: false });
      on(this.plot, 'dblclick', () => this.showAll());
      this.pointers = new Map();
      on(this.plot, 'pointerdown', (event) => this.startDrag(event));
      on(this.plot, 'pointermove', (event) => this.movePointer(event));
      on(this.plot, 'pointerup', (event) => this.endDrag(event));
      on(this.plot, 'pointercancel', (event) => this.endDrag(event));
      on(this.plot, 'pointerleave', (event) => this.leave(event));
      on(window, 'beforeprint', () => this.prepareForPrint());
      on(window, 'afterprint', () => this.draw(this.plot.clientWidth));
      this.observer = new ResizeObserver(this.guard(() => {
        const width = this.plot.clientWidth;
        if (width && width !== this.picture.width) this.draw(width);
      }));
      this.observer.observe(this.plot);
    }

    prepareForPrint() {
      this.cursor = null;
      this.draw(PRINTED_WIDTH);
    }

    /* Return the step at a pixel, with a fraction. */
    findStep(x) {
      return this.steps.findStep(this.picture.findInstant(x));
    }

    findPointer(event) {
      const { left, right } = this.picture;
      return clamp(event.clientX - this.plot.getBoundingClientRect().left, left, right - 0.1);
    }

    turnWheel(event) {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(2 ** clamp(event.deltaY / 100, -1, 1), this.findStep(this.findPointer(event)));
    }

    startDrag(event) {
      if (event.button) return;
      const x = this.findPointer(event);
      this.pointers.set(event.pointerId, { x, start: x, step: this.findStep(x) });
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
        this.cursor = clamp(Math.floor(this.findStep(x)), 0, this.steps.count - 1);
        this.showCursor();
      }
    }

    /* Set the view in which both fingers are at the steps at which they started. */
    pinch() {
      const [one, other] = [...this.pointers.values()].sort((a, b) => a.step - b.step);
      if (other.x - one.x < SHORTEST_DRAG) return;
      const { left, right } = this.picture;
      const perPixel = (other.step - one.step) / (other.x - one.x);
      const first = one.step - (one.x - left) * perPixel;
      this.setView(first, first + (right - left) * perPixel);
    }

    endDrag(event) {
      const pointer = this.pointers.get(event.pointerId);
      this.pointers.delete(event.pointerId);
      if (!pointer || event.type === 'pointercancel' || event.pointerType !== 'mouse') return;
      if (Math.abs(pointer.x - pointer.start) < SHORTEST_DRAG) return;
      const [first, last] = [pointer.step, this.findStep(pointer.x)].sort((one, next) => one - next);
      this.cursor = null;
      this.setView(Math.floor(first), Math.ceil(last));
      this.announceView();
    }

    leave(event) {
      if (this.pointers.size || event.pointerType !== 'mouse') return;
      this.cursor = null;
      this.showCursor();
    }
  }

  return { mount };
})();
