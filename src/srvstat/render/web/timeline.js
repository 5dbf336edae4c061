'use strict';

/* What chart.js draws: the steps of the document `timeline`, merged exactly, ticks, and texts. */
globalThis.srvstatTimeline = (() => {
  const MINUTE = 60_000;
  const HOUR = 60 * MINUTE;
  const DAY = 24 * HOUR;
  const MONDAY = Date.UTC(1970, 0, 5);
  const LENGTHS = [
    ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => ({ length: minutes * MINUTE })),
    ...[1, 2, 7, 14].map((days) => ({ length: days * DAY })),
    ...[1, 2, 3, 6].map((months) => ({ months })),
    ...[1, 2, 5, 10, 20, 50, 100].map((years) => ({ months: 12 * years })),
  ].map(({ length, months }) => ({ length, months, shortest: length || months * 28 * DAY }));

  /* The steps that a chart can have, with their least lengths. LEAST_LENGTHS has the least of a chart
     over a longer time: shorter ones would hide each other, or daily cycles would look like noise.
     Points are at least LEAST_DISTANCE pixels apart. Of a partial step, observations cover less than
     WHOLE_SHARE. Days of LEAST_FOR_WEEKS have a line of weeks, too. All as in render/timeline.py. */
  const STEPS = new Map([
    ...[1, 2, 5, 10, 15, 30].map((minutes) => [`${minutes}m`, minutes * MINUTE]),
    ...[1, 2, 3, 6, 12].map((hours) => [`${hours}h`, hours * HOUR]),
    ['day', DAY], ['week', 7 * DAY], ['month', 28 * DAY],
  ]);
  const NOUNS = { m: 'minute', h: 'hour', day: 'day', week: 'week', month: 'month' };
  const LEAST_LENGTHS = [[45 * DAY, DAY], [10 * DAY, HOUR]];
  const LEAST_DISTANCE = 0.75;
  const LEAST_FOR_WEEKS = 60 * DAY;
  const WHOLE_SHARE = 0.9;
  const LONGEST_PLAIN = 9_999_999;
  const PREFIXES = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

  /* The clock of a time zone. A local time is in milliseconds, as if the clock showed UTC. */
  function createClock(timeZone) {
    const fields = ['year', 'month', 'day', 'hour', 'minute', 'second'];
    const options = { timeZone, hourCycle: 'h23' };
    for (const field of fields) options[field] = 'numeric';
    const format = new Intl.DateTimeFormat('en', options);
    const offsets = new Map();

    function measureOffset(at) {
      const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
      const [year, month, ...rest] = fields.map((field) => parts.get(field));
      return Date.UTC(year, month - 1, ...rest) - Math.floor(at / 1000) * 1000;
    }
    function findDayOffset(day) {
      if (!offsets.has(day)) offsets.set(day, measureOffset(day * DAY));
      return offsets.get(day);
    }
    function findOffset(at) {
      const day = Math.floor(at / DAY);
      const offset = findDayOffset(day);
      return findDayOffset(day + 1) === offset ? offset : measureOffset(at);
    }
    const toLocal = (at) => at + findOffset(at);
    /* A local time that occurs twice is the first one. */
    function toInstant(local) {
      const first = local - findOffset(local - DAY);
      const second = local - findOffset(local + DAY);
      return toLocal(first) !== local && toLocal(second) === local ? second : first;
    }
    return { toLocal, toInstant };
  }

  /* List the instants in an interval at which the clock shows a multiple of a length. */
  function listRoundTimes(clock, step, from, to) {
    const low = clock.toLocal(from) - 2 * HOUR;
    const high = clock.toLocal(to) + 2 * HOUR;
    const start = new Date(low);
    const month = (start.getUTCFullYear() - 2000) * 12 + start.getUTCMonth();
    const getLocal = step.months
      ? (n) => Date.UTC(2000, (Math.floor(month / step.months) + n) * step.months)
      : (n) => MONDAY + (Math.floor((low - MONDAY) / step.length) + n) * step.length;
    const times = [];
    for (let n = 0, local = getLocal(0); local <= high; n += 1, local = getLocal(n)) {
      const at = clock.toInstant(local);
      const isSkipped = step.shortest < DAY && clock.toLocal(at) !== local;
      if (at >= from && at <= to && !isSkipped) times.push({ at, local });
    }
    return times;
  }

  function chooseTimeTicks(clock, from, to, most) {
    for (const step of LENGTHS) {
      if (Math.floor((to - from) / step.shortest) > most + 1) continue;
      const times = listRoundTimes(clock, step, from, to);
      if (times.length <= most) {
        return times.map(({ at, local }) => ({ at, label: formatTick(new Date(local), step) }));
      }
    }
    return [];
  }

  const formatDate = (options) => new Intl.DateTimeFormat('en', { timeZone: 'UTC', ...options });
  const [MONTH, MONTH_DAY, FULL_DATE, TIME] = [
    formatDate({ month: 'short' }),
    formatDate({ month: 'short', day: 'numeric' }),
    formatDate({ month: 'short', day: 'numeric', year: 'numeric' }),
    formatDate({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
  ];

  function formatTick(date, step) {
    if (step.months) return date.getUTCMonth() ? MONTH.format(date) : String(date.getUTCFullYear());
    return (date % DAY ? TIME : MONTH_DAY).format(date);
  }

  /* Format an interval of local time: `Mar 4, 12:00–18:00`, `Mar 4`, `Mar 4 – Mar 9`. */
  function formatInterval(clock, from, to, hasYear) {
    // A window of all observations begins 1 ms before the first one, not a minute.
    const [start, end] = [from, to].map((at) => clock.toLocal(Math.ceil(at / 1000) * 1000));
    const formatDay = (hasYear ? FULL_DATE : MONTH_DAY).format;
    // A clock that is set back can show the same time at both ends.
    if (start % DAY === 0 && end % DAY === 0 && start < end) {
      return end - start === DAY ? formatDay(start) : `${formatDay(start)} – ${formatDay(end - DAY)}`;
    }
    const endTime = end % DAY || end <= start ? TIME.format(end) : '24:00';
    const endDay = Math.max(start, end - 1);
    return Math.floor(start / DAY) === Math.floor(endDay / DAY)
      ? `${formatDay(start)}, ${TIME.format(start)}–${endTime}`
      : `${formatDay(start)}, ${TIME.format(start)} – ${formatDay(endDay)}, ${endTime}`;
  }

  const WHOLE = new Intl.NumberFormat('en');
  const ROUNDED = new Intl.NumberFormat('en', {
    minimumFractionDigits: 2, maximumFractionDigits: 2, roundingMode: 'halfEven',
  });

  /* Format the figures of merged steps; those of steps without observations are dashes. */
  function formatFigures({ average, lowest, peak, observations }) {
    const format = (numbers, value) => (value === null ? '–' : numbers.format(value));
    return {
      average: format(ROUNDED, average),
      lowest: format(WHOLE, lowest),
      peak: format(WHOLE, peak),
      observations: WHOLE.format(observations),
    };
  }

  /* Return a step in words, as render/figures.py: `a day`, `6 hours`. */
  function describeStep(step) {
    const [, count, unit] = /^(\d*)(\w+)$/.exec(step);
    const noun = NOUNS[unit];
    return count > 1 ? `${count} ${noun}s` : `${unit === 'h' ? 'an' : 'a'} ${noun}`;
  }

  /* Choose at most `most` round numbers at equal distances from 0 to at least `high`, as render/axes.py. */
  function chooseTicks(high, most) {
    for (let exponent = -2; ; exponent += 1) {
      for (const mantissa of [1, 2, 5]) {
        const [scale, divisor] = [mantissa * 10 ** Math.max(exponent, 0), 10 ** Math.max(-exponent, 0)];
        const count = Math.max(1, Math.ceil(high / scale * divisor));
        if (count < most) return Array.from({ length: count + 1 }, (_, n) => n * scale / divisor);
      }
    }
  }

  /* Format ticks with equally many decimals: `0.0`, `0.5`; `1,000`; `50M`. */
  function formatTicks(ticks) {
    const digits = Math.max(...ticks.map((tick) => (String(tick).split('.')[1] || '').length));
    const isPlain = digits || ticks[ticks.length - 1] <= LONGEST_PLAIN;
    const [unit, prefix] = (!isPlain && PREFIXES.find(([size]) => ticks.every((tick) => tick % size === 0)))
      || [1, ''];
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return ticks.map((tick) => (tick / unit).toLocaleString('en', options) + (tick ? prefix : ''));
  }

  function escapeCode(character) {
    const code = character.codePointAt(0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  }

  /* Return a text of a stranger as visible text, as render/text.py. */
  const escapeText = (text) => text.trim()
    .replace(/([\p{Mn}\p{Me}]{4})[\p{Mn}\p{Me}]+/gu, '$1')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escapeCode)
    .replace(/\p{Zs}/gu, ' ')
    .replace(/[\u115f\u1160\u2800\u3164\uffa0]/g, '\ufffd');

  /* Return a text without the color codes of Cfx.re, as documents/color_codes.py. */
  function removeColorCodes(text) {
    const shown = text.replace(/\^[0-9]/g, '');
    return shown.trim() ? shown : text;
  }

  /* Return hostnames; an ambiguous one gets its identifier. */
  function nameServers(servers) {
    const names = servers.map(({ hostname }) => escapeText(removeColorCodes(hostname)));
    return names.map((name, n) => {
      const isUnique = names.filter((other) => other === name).length === 1;
      const id = escapeText(servers[n].serverId);
      if (!name) return id;
      return isUnique ? name : `${name} (${id})`;
    });
  }

  /* Return the intervals that two lists of disjoint intervals, in order of time, share. */
  function intersect(one, other) {
    const shared = [];
    for (let [left, right] = [0, 0]; left < one.length && right < other.length;) {
      const from = Math.max(one[left].from, other[right].from);
      const to = Math.min(one[left].to, other[right].to);
      if (from < to) shared.push({ from, to });
      if (one[left].to < other[right].to) left += 1;
      else right += 1;
    }
    return shared;
  }

  /* Return how a line joins successive points of a server: `solid`, or `dashed` to or from a partial
     step. Return null where a gap interrupts it; one of less than a tenth of a step does not. */
  function joinPoints(one, other, gaps) {
    const isDashed = one.figures.isPartial || other.figures.isPartial;
    if (isDashed || one.to < other.from) {
      const [start, end] = [(one.from + one.to) / 2, (other.from + other.to) / 2];
      if (gaps.some(({ from, to }) => from < end && to > start)) return null;
    }
    return isDashed ? 'dashed' : 'solid';
  }

  /* Return the points that determine an axis: the whole ones, or all of them if none is whole. */
  function findScale(points) {
    const whole = points.filter(({ figures }) => !figures.isPartial);
    return whole.length ? whole : points;
  }

  /* The steps of a timeline, merged into steps of its calendar exactly as render/timeline.py
     merges them. A bin is such a step, cut to the window, with the figures of each server. */
  function createSteps(timeline) {
    const { servers, timeZone } = timeline;
    const clock = createClock(timeZone);
    const edges = timeline.steps.flatMap(({ from, seconds, count }) => (
      Array.from({ length: count }, (_, n) => Date.parse(from) + n * seconds * 1000)));
    const { from: lastFrom, seconds: lastSeconds, count: lastCount } = timeline.steps.at(-1);
    const baseCount = edges.length;
    edges.push(Date.parse(lastFrom) + lastCount * lastSeconds * 1000);
    const start = timeline.window.from === null ? edges[0] : Date.parse(timeline.window.from);
    const end = Math.max(Date.parse(timeline.window.to), start + 1);
    const gaps = servers.map((server) => (
      server.gaps.map(({ from, to }) => ({ from: Date.parse(from), to: Date.parse(to) }))));
    const divided = new Map();

    /* Return the figures of a server in the base steps from `first` up to, but without, `last`, which
       are a part of a calendar step of so many milliseconds. */
    function merge(n, first, last, length = edges[last] - edges[first]) {
      const server = servers[n];
      let [observations, weights, players, lowest, peak, observed] = [0, 0, 0, null, null, 0];
      for (let step = first; step < last; step += 1) {
        // A step is observed for a whole number of half milliseconds.
        const held = Math.round(2 * server.observedShares[step] * (edges[step + 1] - edges[step]));
        observed += held;
        observations += server.sampleCounts[step];
        const weight = timeline.hold ? held : server.sampleCounts[step];
        if (weight) {
          weights += weight;
          // Players are integers, so their sum in a step is one, too.
          players += Math.round(server.averages[step] * weight);
          lowest = lowest === null ? server.lowest[step] : Math.min(lowest, server.lowest[step]);
          peak = peak === null ? server.peak[step] : Math.max(peak, server.peak[step]);
        }
      }
      const average = weights ? players / weights : null;
      const observedShare = observed / (2 * length);
      return { observations, average, lowest, peak, observedShare, isPartial: observedShare < WHOLE_SHARE };
    }

    function findNumber(step, local) {
      const date = new Date(local);
      if (step === 'month') return date.getUTCFullYear() * 12 + date.getUTCMonth();
      return Math.floor((local - (step === 'week' ? MONDAY : 0)) / STEPS.get(step));
    }
    function findStart(step, number) {
      const local = step === 'month'
        ? Date.UTC(1970, number - 12 * 1970)
        : number * STEPS.get(step) + (step === 'week' ? MONDAY : 0);
      return clock.toInstant(local);
    }
    /* Return the length of the calendar step that contains an instant. */
    function measure(step, at) {
      const number = findNumber(step, clock.toLocal(at));
      return findStart(step, number + 1) - findStart(step, number);
    }

    /* Return the numbers of the base steps with which calendar steps begin. */
    function listFirst(step) {
      const numbers = Array.from({ length: baseCount }, (_, n) => n);
      if (step === timeline.step) return numbers;
      let [current, before] = [null, -Infinity];
      return numbers.filter((n) => {
        const local = clock.toLocal(edges[n]);
        const number = findNumber(step, local);
        // Where the clock is set back by a whole step, the repeated time has steps of its own.
        const isFirst = number !== current || before - local >= STEPS.get(step);
        current = number;
        before = local + edges[n + 1] - edges[n];
        return isFirst;
      });
    }

    /* Return the bins of the whole window. */
    function divideWindow(step) {
      const all = listFirst(step);
      return all.map((first, at) => {
        const last = all[at + 1] ?? baseCount;
        // The first and the last day, say, can lack hours that are not in the window.
        const isCut = step !== timeline.step && (at === 0 || last === baseCount);
        const length = Math.max(edges[last] - edges[first], isCut ? measure(step, edges[first]) : 0);
        const figures = servers.map((_, n) => merge(n, first, last, length));
        return { first, last, from: Math.max(edges[first], start), to: Math.min(edges[last], end), figures };
      });
    }

    /* Return the name of the step for an interval that is so many pixels wide. It consists of whole
       base steps: 3h does not consist of 2h, nor a month of weeks. */
    function chooseStep({ from, to }, width) {
      const [, least] = LEAST_LENGTHS.find(([longest]) => to - from > longest) ?? [0, 0];
      const shortest = Math.max((to - from) / width * LEAST_DISTANCE, least);
      const base = STEPS.get(timeline.step);
      const divisible = [...STEPS].filter(([name, length]) => name === timeline.step
        || (length % base === 0 && (name !== 'month' || base <= DAY)));
      return (divisible.find(([, length]) => length >= shortest) ?? divisible.at(-1))[0];
    }

    /* Divide a view, an interval, for so many pixels into the whole bins that it has a part of. The
       points of each server are its bins with observations, each with its joint to the one before. If
       many days would look like noise, `weeks` has the whole weeks of each server, too. */
    function divide(view, width) {
      const step = chooseStep(view, width);
      const bins = listBins(step, view);
      const isLong = step === 'day' && view.to - view.from >= LEAST_FOR_WEEKS;
      const inside = isLong ? listBins('week', view).filter(({ from, to }) => from >= view.from && to <= view.to) : [];
      const weeks = listPoints(inside).map((own) => own.filter(({ figures }) => !figures.isPartial));
      return { step, bins, points: listPoints(bins), weeks: isLong ? weeks : null };
    }

    function listBins(step, view) {
      if (!divided.has(step)) divided.set(step, divideWindow(step));
      return divided.get(step).filter(({ from, to }) => from < view.to && to > view.from);
    }

    function listPoints(bins) {
      return servers.map((_, n) => {
        const own = bins.map(({ from, to, figures }) => ({ from, to, figures: figures[n] }))
          .filter(({ figures }) => figures.average !== null);
        return own.map((point, at) => (
          { ...point, joint: at ? joinPoints(own[at - 1], point, gaps[n]) : null }));
      });
    }

    /* Return the gaps that all of some servers have. */
    const findGaps = (numbers) => (
      numbers.length ? numbers.map((n) => gaps[n]).reduce(intersect, [{ from: start, to: end }]) : []);
    const marks = (timeline.marks ?? []).map(({ at, label }) => ({ at: Date.parse(at), label: escapeText(label) }));
    const shortest = (edges[baseCount] - edges[0]) / baseCount;
    return { timeZone, clock, start, end, shortest, marks, findGaps, merge, divide };
  }

  return {
    createClock, createSteps, findScale, nameServers, chooseTicks, formatTicks, chooseTimeTicks,
    formatInterval, formatFigures, describeStep, escapeText, removeColorCodes,
  };
})();
