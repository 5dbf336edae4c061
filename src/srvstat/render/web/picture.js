'use strict';

/* Draw merged steps as an SVG picture with the looks of the one that render/timeline.py draws. */
globalThis.srvstatPicture = (() => {
  const { chooseTicks, formatTicks, chooseTimeTicks, describeStep, findScale } = globalThis.srvstatTimeline;

  const PIXELS_PER_DIGIT = 7;
  const PIXELS_PER_LETTER = 6.6;
  const SMALLEST_WIDTH = 200;
  const TOP = 36;
  const BOTTOM = 26;
  const RIGHT = 8;
  const PANEL = 66;
  const BETWEEN_PANELS = 26;
  /* Panels share a scale, unless the highest value of one takes less than this share of it. */
  const LEAST_SHARE = 0.25;
  /* In narrower pictures, names are not beside the lines. */
  const LEAST_WIDTH_FOR_NAMES = 560;
  const NAME_HEIGHT = 16;
  /* The width of the buttons of a chart, which are beside the notes. */
  const BUTTONS = 180;
  /* A pointer at this distance from a line, in pixels, makes the others pale. */
  const NEAR = 24;

  function add(parent, name, attributes = {}, text = '') {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, typeof value === 'number' ? Number(value.toFixed(1)) : value);
    }
    element.textContent = text;
    return parent.appendChild(element);
  }
  const addSeries = (parent, n) => add(parent, 'g', { class: `series series-${n + 1}` });

  /* Return the runs of points with one kind of joint between them; a single point is a run. */
  function splitRuns(points, joint) {
    const runs = [];
    for (const point of points) {
      if (runs.length && point.joint === joint) runs.at(-1).push(point);
      else runs.push([point]);
    }
    return runs;
  }

  /* Move heights, in pixels, so that names there do not overlap or leave the panel. */
  function spread(heights, { top, bottom }) {
    const order = heights.map((_, n) => n).sort((one, other) => heights[one] - heights[other]);
    const placed = [...heights];
    let limit = top;
    for (const n of order) {
      placed[n] = Math.max(placed[n], limit);
      limit = placed[n] + NAME_HEIGHT;
    }
    limit = bottom;
    for (const n of order.reverse()) {
      placed[n] = Math.min(placed[n], limit);
      limit = placed[n] - NAME_HEIGHT;
    }
    return placed;
  }

  class Picture {
    constructor(parent, steps, names) {
      this.svg = add(parent, 'svg', { class: 'picture', 'aria-hidden': 'true' });
      this.steps = steps;
      this.names = names;
    }

    /* Draw a view, an interval, of the servers that are shown, in whole steps, and with `hasPanels`
       each server in a panel of its own. */
    draw(view, shown, width, hasPanels) {
      this.shown = shown;
      this.width = Math.max(width, SMALLEST_WIDTH);
      const numbers = shown.flatMap((isShown, n) => (isShown ? [n] : []));
      // The range of players is shown for one server only; several would cover each other.
      this.hasBand = numbers.length === 1;
      this.hasPanels = hasPanels && numbers.length > 1;
      Object.assign(this, this.steps.divide(view, this.width - RIGHT));
      this.stepName = describeStep(this.step);
      this.from = this.bins[0].from;
      this.to = this.bins.at(-1).to;
      this.svg.replaceChildren();
      this.layOut(this.hasPanels ? numbers.map((n) => [n]) : [numbers]);
      this.svg.setAttribute('viewBox', `0 0 ${this.width} ${this.height}`);
      for (const panel of this.panels) this.drawPanel(panel);
      this.drawTimes();
      this.groups = shown.map((isShown, n) => (isShown ? this.drawServer(n) : null));
      if (this.right < this.width - RIGHT) this.drawNames(numbers);
      add(this.svg, 'text', { class: 'unit', x: 0, y: 12 }, this.listNotes().join(' · '));
      this.overlay = add(this.svg, 'g');
    }

    /* Choose the places and the scales of panels, each of which has some servers. */
    layOut(groups) {
      const longest = Math.max(...this.names.map((name) => name.length)) * PIXELS_PER_LETTER + 30;
      const hasNames = groups[0].length > 1 && this.width >= LEAST_WIDTH_FOR_NAMES;
      this.right = this.width - (hasNames ? Math.min(longest, this.width / 4) : RIGHT);
      const height = this.hasPanels ? PANEL : Math.max(200, Math.min(300, Math.round(this.width * 0.31)));
      const highs = groups.map((numbers) => this.findHighest(numbers));
      const highest = Math.max(...highs);
      this.hasOwnScales = highs.some((high) => high < LEAST_SHARE * highest);
      this.panels = groups.map((numbers, at) => {
        const top = TOP + at * (height + BETWEEN_PANELS) + (this.hasPanels ? 16 : 0);
        const most = Math.max(4, Math.floor(height / 36));
        const ticks = chooseTicks(Math.max(this.hasOwnScales ? highs[at] : highest, 1), most);
        return { numbers, top, bottom: top + height, ticks, labels: formatTicks(ticks) };
      });
      this.top = this.panels[0].top;
      this.bottom = this.panels.at(-1).bottom;
      this.height = this.bottom + BOTTOM;
      const labels = this.panels.flatMap((panel) => panel.labels);
      this.left = Math.max(...labels.map((label) => label.length)) * PIXELS_PER_DIGIT + 8;
      const across = this.right - this.left;
      this.findX = (at) => this.left + (at - this.from) / (this.to - this.from) * across;
      this.findInstant = (x) => this.from + (x - this.left) / across * (this.to - this.from);
    }

    /* Return the highest value that determines an axis. */
    findHighest(numbers) {
      const name = this.hasBand ? 'peak' : 'average';
      const points = findScale(numbers.flatMap((n) => this.points[n]));
      return points.reduce((most, { figures }) => Math.max(most, figures[name]), 0);
    }

    /* A value above the axis, of a partial step, is at its top. */
    findY(players, n) {
      const { top, bottom, ticks } = this.panels.find(({ numbers }) => numbers.includes(n));
      return bottom - Math.min(players, ticks.at(-1)) / ticks.at(-1) * (bottom - top);
    }

    /* Draw the axis of a panel and the gaps that all of its servers have. */
    drawPanel(panel) {
      const { svg, left, right } = this;
      const { numbers, top, bottom, ticks, labels } = panel;
      panel.gaps = this.steps.findGaps(numbers).filter(({ from, to }) => from < this.to && to > this.from);
      for (const { from, to } of panel.gaps) {
        const gap = { from: Math.max(from, this.from), to: Math.min(to, this.to) };
        this.drawSpan(svg, 'gap', gap, top, bottom);
        this.drawSpan(svg, 'gap-mark', gap, bottom - 5, bottom);
      }
      ticks.forEach((tick, n) => {
        const y = bottom - tick / ticks.at(-1) * (bottom - top);
        add(svg, 'line', { class: n ? 'grid' : 'axis', x1: left, x2: right, y1: y, y2: y });
        add(svg, 'text', { class: 'tick', x: left - 6, y: y + 4, 'text-anchor': 'end' }, labels[n]);
      });
      if (this.hasPanels) add(svg, 'text', { class: 'heading', x: left, y: top - 7 }, this.names[numbers[0]]);
    }

    /* Draw the axis of time, and the marks of the timeline. */
    drawTimes() {
      const { svg, left, right, top, bottom } = this;
      const most = Math.max(2, Math.floor((right - left) / 76));
      for (const { at, label } of chooseTimeTicks(this.steps.clock, this.from, this.to, most)) {
        const x = this.findX(at);
        add(svg, 'line', { class: 'axis', x1: x, x2: x, y1: bottom, y2: bottom + 4 });
        const farthest = this.width - label.length * PIXELS_PER_DIGIT / 2;
        add(svg, 'text', {
          class: 'tick', x: Math.min(x, farthest), y: bottom + 18, 'text-anchor': 'middle',
        }, label);
      }
      for (const { at, label } of this.steps.marks.filter((mark) => mark.at >= this.from && mark.at <= this.to)) {
        const x = this.findX(at);
        const [side, anchor] = x < (left + right) / 2 ? [4, 'start'] : [-4, 'end'];
        add(svg, 'line', { class: 'mark', x1: x, x2: x, y1: top, y2: bottom });
        add(svg, 'text', { class: 'label', x: x + side, y: top + 12, 'text-anchor': anchor }, label);
      }
    }

    /* Draw the names of servers at the ends of their lines. */
    drawNames(numbers) {
      const drawn = numbers.filter((n) => this.points[n].length);
      const ends = drawn.map((n) => (this.weeks?.[n].at(-1) ?? this.points[n].at(-1)).figures.average);
      const heights = spread(ends.map((end, at) => this.findY(end, drawn[at])), this.panels[0]);
      const most = Math.floor((this.width - this.right - 34) / PIXELS_PER_LETTER);
      drawn.forEach((n, at) => {
        const name = this.names[n];
        const shown = name.length > most ? `${name.slice(0, most - 1)}…` : name;
        const y = heights[at];
        add(this.groups[n], 'path', { class: 'line name', d: `M${this.right + 6} ${y.toFixed(1)}h14` });
        add(this.groups[n], 'text', { class: 'label', x: this.right + 26, y: y + 4 }, shown);
      });
    }

    /* Return what the lines and areas mean, as far as there is room. */
    listNotes() {
      const notes = [`players, averages of ${this.stepName}`, `in ${this.steps.timeZone}`];
      if (this.weeks) notes.push('strong: of a week');
      if (this.hasBand) notes.push('shaded from lowest to peak');
      if (this.hasOwnScales) notes.push('scales differ');
      if (this.panels.some(({ gaps }) => gaps.length)) notes.push('gray bar: no observations');
      if (this.points.some((points, n) => this.shown[n] && points.some(({ figures }) => figures.isPartial))) {
        notes.push('dashed: less than 90% observed');
      }
      const room = this.width - BUTTONS;
      while (notes.length > 1 && notes.join(' · ').length * PIXELS_PER_LETTER > room) notes.pop();
      return notes;
    }

    drawSpan(parent, name, { from, to }, top = this.top, bottom = this.bottom) {
      const [x, end] = [this.findX(from), this.findX(to)];
      add(parent, 'rect', { class: name, x, y: top, width: Math.max(2, end - x), height: bottom - top });
    }

    /* Draw the line of a server, with a strong line of weeks above a pale one of days. */
    drawServer(n) {
      const group = addSeries(this.svg, n);
      const steps = this.weeks ? add(group, 'g', { class: 'daily' }) : group;
      const points = this.points[n].map((point) => this.locate(point));
      const join = (name, run) => run.map(({ x, figures }) => (
        `${x.toFixed(1)} ${this.findY(figures[name], n).toFixed(1)}`)).join('L');
      const whole = splitRuns(points, 'solid').filter(([{ figures }]) => !figures.isPartial);
      if (this.hasBand) {
        for (const run of whole) {
          // It begins and ends with the steps.
          const ends = [{ ...run[0], x: run[0].start }, ...run, { ...run.at(-1), x: run.at(-1).end }];
          const edge = `${join('peak', ends)}L${join('lowest', ends.reverse())}`;
          add(steps, 'path', { class: 'band', d: `M${edge}Z` });
        }
      }
      const drawLines = (parent, name, all, joint) => {
        const lines = splitRuns(all, joint).filter((run) => run.length > 1);
        const d = lines.map((run) => `M${join('average', run)}`).join('');
        if (d) add(parent, 'path', { class: name, d });
      };
      drawLines(steps, 'line', points, 'solid');
      drawLines(steps, 'line partial', points, 'dashed');
      points.forEach((point, at) => {
        const isAlone = !point.joint && !points[at + 1]?.joint;
        if (point.figures.isPartial || isAlone) this.drawDot(steps, point, 2.5, n);
      });
      if (this.weeks) {
        const weeks = this.weeks[n].map((point) => this.locate(point));
        drawLines(group, 'line weekly', weeks, 'solid');
      }
      return group;
    }

    drawDot(group, { x, figures }, r, n) {
      const name = figures.isPartial ? 'dot partial' : 'dot';
      add(group, 'circle', { class: name, cx: x, cy: this.findY(figures.average, n), r });
    }

    /* Return a point with the places of its start, its middle and its end. */
    locate(point) {
      const [start, end] = [this.findX(point.from), this.findX(point.to)];
      return { ...point, x: (start + end) / 2, start, end };
    }

    clearMarks() {
      this.overlay.replaceChildren();
    }

    /* Make all servers pale but one, or with null none. */
    focus(focused) {
      this.groups.forEach((group, n) => group?.classList.toggle('dim', focused !== null && n !== focused));
    }

    /* Return the server whose line is nearest to a height at a bin, or null if none is near. */
    findNearest(bin, height) {
      const distances = bin.figures.map(({ average }, n) => (
        this.shown[n] && average !== null ? Math.abs(this.findY(average, n) - height) : Infinity));
      const least = Math.min(...distances);
      return least < NEAR ? distances.indexOf(least) : null;
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
      add(this.overlay, 'line', { class: 'cursor', x1: x, x2: x, y1: this.top, y2: this.bottom });
      this.points.forEach((points, n) => {
        const point = this.shown[n] && points.find(({ from }) => from === bin.from);
        if (point) this.drawDot(addSeries(this.overlay, n), this.locate(point), 4, n);
      });
      const labelWidth = label.length * PIXELS_PER_DIGIT;
      if (labelWidth > this.right - this.left) return;
      const isLeft = x < (this.left + this.right) / 2;
      const beside = isLeft ? x + 6 : x - 6 - labelWidth;
      const start = Math.max(this.left, Math.min(beside, this.right - labelWidth));
      const attributes = { class: 'cursor-label', x: isLeft ? start : start + labelWidth, y: this.top + 14 };
      add(this.overlay, 'text', { ...attributes, 'text-anchor': isLeft ? 'start' : 'end' }, label);
    }
  }

  return { Picture };
})();
