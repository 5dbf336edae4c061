'use strict';

/* Draw merged steps as an SVG picture with the looks of the one that render/timeline.py draws. */
globalThis.srvstatPicture = (() => {
  const { chooseTicks, formatTicks, chooseTimeTicks, describeStep, findScale } = globalThis.srvstatTimeline;

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

  /* Return the runs of points with one kind of joint between them; a single point is a run. */
  function splitRuns(points, joint) {
    const runs = [];
    for (const point of points) {
      if (runs.length && point.joint === joint) runs.at(-1).push(point);
      else runs.push([point]);
    }
    return runs;
  }

  class Picture {
    constructor(parent, steps) {
      this.svg = add(parent, 'svg', { class: 'picture', 'aria-hidden': 'true' });
      this.steps = steps;
    }

    /* Draw a view, an interval, of the servers that are shown, in whole steps. */
    draw(view, shown, width) {
      this.shown = shown;
      this.width = Math.max(width, SMALLEST_WIDTH);
      this.height = Math.max(240, Math.min(380, Math.round(this.width * 0.36)));
      this.right = this.width - RIGHT;
      this.bottom = this.height - BOTTOM;
      const shownCount = shown.filter(Boolean).length;
      // The range of players is shown for one server only; several would cover each other.
      this.hasBand = shownCount === 1;
      Object.assign(this, this.steps.divide(view, this.right));
      this.stepName = describeStep(this.step);
      this.from = this.bins[0].from;
      this.to = this.bins.at(-1).to;
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
      const points = findScale(this.listShown());
      const high = points.reduce((most, { figures }) => Math.max(most, figures[name]), 0);
      const ticks = chooseTicks(Math.max(high, 1), Math.max(3, Math.floor((this.bottom - TOP) / 36)));
      const top = ticks.at(-1);
      const labels = formatTicks(ticks);
      this.left = Math.max(...labels.map((label) => label.length)) * PIXELS_PER_DIGIT + 8;
      const [width, height] = [this.right - this.left, this.bottom - TOP];
      this.findX = (at) => this.left + (at - this.from) / (this.to - this.from) * width;
      // A value above the axis, of a partial step, is at its top.
      this.findY = (players) => this.bottom - Math.min(players, top) / top * height;
      this.findInstant = (x) => this.from + (x - this.left) / width * (this.to - this.from);
      return ticks.map((tick, n) => ({ y: this.findY(tick), label: labels[n] }));
    }

    /* Return the points of all servers that are shown. */
    listShown() {
      return this.points.filter((_, n) => this.shown[n]).flat();
    }

    drawAxes(ticks) {
      const { svg, left, right, bottom } = this;
      add(svg, 'text', { class: 'unit', x: 0, y: 12 }, this.listNotes().join(' · '));
      for (const { y, label } of ticks) {
        add(svg, 'line', { class: y === bottom ? 'axis' : 'grid', x1: left, x2: right, y1: y, y2: y });
        add(svg, 'text', { class: 'tick', x: left - 6, y: y + 4, 'text-anchor': 'end' }, label);
      }
      const most = Math.max(2, Math.floor((right - left) / 76));
      for (const { at, label } of chooseTimeTicks(this.steps.clock, this.from, this.to, most)) {
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
      const notes = [`players, averages of ${this.stepName}`, `in ${this.steps.timeZone}`];
      if (this.hasBand) notes.push('shaded from lowest to peak');
      if (this.listShown().some(({ figures }) => figures.isPartial)) {
        notes.push('pale and dashed: less than 90% observed');
      }
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
      const points = this.points[n].map((point) => this.locate(point));
      const join = (name, run) => run.map(({ x, figures }) => (
        `${x.toFixed(1)} ${this.findY(figures[name]).toFixed(1)}`)).join('L');
      const whole = splitRuns(points, 'solid').filter(([{ figures }]) => !figures.isPartial);
      if (this.hasBand) {
        for (const run of whole) {
          // It begins and ends with the steps.
          const ends = [{ ...run[0], x: run[0].start }, ...run, { ...run.at(-1), x: run.at(-1).end }];
          const edge = `${join('peak', ends)}L${join('lowest', ends.reverse())}`;
          add(group, 'path', { class: 'band', d: `M${edge}Z` });
        }
      }
      for (const [name, joint] of [['line', 'solid'], ['line partial', 'dashed']]) {
        const lines = splitRuns(points, joint).filter((run) => run.length > 1);
        const d = lines.map((run) => `M${join('average', run)}`).join('');
        if (d) add(group, 'path', { class: name, d });
      }
      points.forEach((point, at) => {
        const isAlone = !point.joint && !points[at + 1]?.joint;
        if (point.figures.isPartial || isAlone) this.drawDot(group, point, 2.5);
      });
    }

    drawDot(group, { x, figures }, r) {
      const name = figures.isPartial ? 'dot partial' : 'dot';
      add(group, 'circle', { class: name, cx: x, cy: this.findY(figures.average), r });
    }

    /* Return a point with the places of its start, its middle and its end. */
    locate(point) {
      const [start, end] = [this.findX(point.from), this.findX(point.to)];
      return { ...point, x: (start + end) / 2, start, end };
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
      this.points.forEach((points, n) => {
        const point = this.shown[n] && points.find(({ from }) => from === bin.from);
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
