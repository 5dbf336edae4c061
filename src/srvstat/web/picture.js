'use strict';

/* Draw merged steps as an SVG picture with the looks of the one that render/pictures/ draws. */
globalThis.srvstatPicture = (() => {
  const { chooseTicks, formatTicks, chooseTimeTicks, formatLength } = globalThis.srvstatTimeline;

  const PIXELS_PER_DIGIT = 7;
  const PIXELS_PER_LETTER = 6.4;
  const SMALLEST_WIDTH = 200;
  const TOP = 28;
  const BOTTOM = 26;
  const RIGHT = 8;

  function add(parent, name, attributes = {}, text = '') {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, typeof value === 'number' ? Number(value.toFixed(1)) : value);
    }
    element.textContent = text;
    return parent.appendChild(element);
  }
  const addSeries = (parent, n) => add(parent, 'g', { class: `series series-${n + 1}` });

  /* A sample of the line of server `n`, for a legend. */
  function addSample(parent, n) {
    const svg = add(parent, 'svg', { class: 'chart-sample', viewBox: '0 0 28 10', 'aria-hidden': 'true' });
    add(addSeries(svg, n), 'path', { class: 'line', d: 'M0 5H28' });
  }

  class Picture {
    constructor(parent, clock, steps) {
      this.svg = add(parent, 'svg', { class: 'picture', 'aria-hidden': 'true' });
      this.clock = clock;
      this.steps = steps;
    }

    /* Draw a view, an interval of steps, of the servers that are shown. */
    draw(view, shown, width) {
      this.shown = shown;
      this.width = Math.max(width, SMALLEST_WIDTH);
      this.height = Math.max(240, Math.min(380, Math.round(this.width * 0.36)));
      this.right = this.width - RIGHT;
      this.bottom = this.height - BOTTOM;
      const shownCount = shown.filter(Boolean).length;
      // The range of players is shown for one server only; several would cover each other.
      this.hasBand = shownCount === 1;
      Object.assign(this, this.steps.divide(view, this.right, shownCount));
      this.from = this.bins[0].from;
      this.to = this.bins[this.bins.length - 1].to;
      this.svg.setAttribute('viewBox', `0 0 ${this.width} ${this.height}`);
      this.svg.replaceChildren();
      const ticks = this.scale();
      this.drawGaps();
      this.drawAxes(ticks);
      shown.forEach((isShown, n) => isShown && this.drawServer(n));
      this.overlay = add(this.svg, 'g');
    }

    /* Choose the scales of both axes; return the ticks of players with their labels. */
    scale() {
      const name = this.hasBand ? 'peak' : 'average';
      const points = this.runs.filter((_, n) => this.shown[n]).flat(2);
      const high = points.reduce((most, { figures }) => Math.max(most, figures[name]), 0);
      const ticks = chooseTicks(Math.max(high, 1), Math.max(3, Math.floor((this.bottom - TOP) / 36)));
      const top = ticks[ticks.length - 1];
      const labels = formatTicks(ticks);
      this.left = Math.max(...labels.map((label) => label.length)) * PIXELS_PER_DIGIT + 8;
      const [width, height] = [this.right - this.left, this.bottom - TOP];
      this.findX = (at) => this.left + (at - this.from) / (this.to - this.from) * width;
      this.findY = (players) => this.bottom - players / top * height;
      this.findInstant = (x) => this.from + (x - this.left) / width * (this.to - this.from);
      return ticks.map((tick, n) => ({ y: this.findY(tick), label: labels[n] }));
    }

    drawAxes(ticks) {
      const { svg, left, right, bottom } = this;
      add(svg, 'text', { class: 'unit', x: 0, y: 12 }, this.listNotes().join(' · '));
      for (const { y, label } of ticks) {
        add(svg, 'line', { class: y === bottom ? 'axis' : 'grid', x1: left, x2: right, y1: y, y2: y });
        add(svg, 'text', { class: 'tick', x: left - 6, y: y + 4, 'text-anchor': 'end' }, label);
      }
      const most = Math.max(2, Math.floor((right - left) / 76));
      for (const { at, label } of chooseTimeTicks(this.clock, this.from, this.to, most)) {
        const x = this.findX(at);
        add(svg, 'line', { class: 'axis', x1: x, x2: x, y1: bottom, y2: bottom + 4 });
        const farthest = this.width - label.length * PIXELS_PER_DIGIT / 2;
        add(svg, 'text', {
          class: 'tick', x: Math.min(x, farthest), y: bottom + 18, 'text-anchor': 'middle',
        }, label);
      }
    }

    /* Return what the lines and areas mean, as far as there is room. */
    listNotes() {
      const notes = [`players, averages of ${formatLength(this.binLength)}`];
      if (this.hasBand) notes.push('shaded from lowest to peak');
      if (this.gaps.length) notes.push('gray: no observations');
      while (notes.length > 1 && notes.join(' · ').length * PIXELS_PER_LETTER > this.width) notes.pop();
      return notes;
    }

    drawSpan(parent, name, { from, to }) {
      const [x, end] = [this.findX(from), this.findX(to)];
      const size = { width: Math.max(1, end - x), height: this.bottom - TOP };
      add(parent, 'rect', { class: name, x, y: TOP, ...size });
    }

    drawGaps() {
      this.gaps = this.steps.commonGaps
        .map(({ from, to }) => ({ from: Math.max(from, this.from), to: Math.min(to, this.to) }))
        .filter(({ from, to }) => from < to);
      for (const gap of this.gaps) this.drawSpan(this.svg, 'gap', gap);
    }

    drawServer(n) {
      const group = addSeries(this.svg, n);
      for (const points of this.runs[n]) {
        const run = points.map((point) => this.locate(point));
        const join = (name, points) => points.map(({ x, figures }) => (
          `${x.toFixed(1)} ${this.findY(figures[name]).toFixed(1)}`)).join('L');
        if (this.hasBand) {
          // It begins and ends with the steps.
          const [first, last] = [run[0], run[run.length - 1]];
          const ends = [{ ...first, x: first.start }, ...run, { ...last, x: last.end }];
          const edge = `${join('peak', ends)}L${join('lowest', ends.reverse())}`;
          add(group, 'path', { class: 'band', d: `M${edge}Z` });
        }
        if (run.length > 1) add(group, 'path', { class: 'line', d: `M${join('average', run)}` });
        else this.drawDot(group, run[0], 2.5);
      }
    }

    drawDot(group, { x, figures }, r) {
      add(group, 'circle', { class: 'dot', cx: x, cy: this.findY(figures.average), r });
    }

    /* Return a point with the places of its start, its middle and its end. */
    locate({ from, to, figures }) {
      const [start, end] = [this.findX(from), this.findX(to)];
      return { x: (start + end) / 2, start, end, figures };
    }

    clearMarks() {
      this.overlay.replaceChildren();
    }

    /* Mark an interval that is being selected. */
    markSelection(start, end) {
      this.clearMarks();
      const [from, to] = [start, end].map(this.findInstant).sort((one, other) => one - other);
      this.drawSpan(this.overlay, 'selection', { from, to });
    }

    markBin(bin, label) {
      this.clearMarks();
      const x = this.findX((bin.from + bin.to) / 2);
      this.drawSpan(this.overlay, 'cursor-span', bin);
      add(this.overlay, 'line', { class: 'cursor', x1: x, x2: x, y1: TOP, y2: this.bottom });
      const middle = (bin.from + bin.to) / 2;
      this.runs.forEach((runs, n) => {
        const point = this.shown[n] && runs.flat().find(({ from, to }) => from <= middle && middle < to);
        if (point) this.drawDot(addSeries(this.overlay, n), this.locate(point), 4);
      });
      const labelWidth = label.length * PIXELS_PER_DIGIT;
      if (labelWidth > this.right - this.left) return;
      const isLeft = x < (this.left + this.right) / 2;
      const beside = isLeft ? x + 6 : x - 6 - labelWidth;
      const start = Math.max(this.left, Math.min(beside, this.right - labelWidth));
      const attributes = { class: 'cursor-label', x: isLeft ? start : start + labelWidth, y: TOP + 14 };
      add(this.overlay, 'text', { ...attributes, 'text-anchor': isLeft ? 'start' : 'end' }, label);
    }
  }

  return { Picture, addSample };
})();
