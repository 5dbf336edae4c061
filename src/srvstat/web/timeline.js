'use strict';

/* What chart.js draws: the steps of the document `timeline`, merged exactly, ticks, and texts. */
globalThis.srvstatTimeline = (() => {
  const HOUR = 3_600_000;
  const DAY = 24 * HOUR;
  const MONDAY = Date.UTC(1970, 0, 5);
  const LENGTHS = [
    ...[1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => ({ length: minutes * 60_000 })),
    ...[1, 2, 7, 14].map((days) => ({ length: days * DAY })),
    ...[1, 2, 3, 6].map((months) => ({ months })),
    ...[1, 2, 5, 10, 20, 50, 100].map((years) => ({ months: 12 * years })),
  ].map(({ length, months }) => ({ length, months, shortest: length || months * 28 * DAY }));

  /* The least distance of bins in pixels, and the least width of a day whose course is shown, for one
     server and for several whose lines cross: as in render/pictures/points.py. */
  const LEAST_DISTANCE = 1.5;
  const LEAST_DAY = 16;
  const LEAST_DAY_OF_SEVERAL = 40;
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
  const ROUNDED = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });

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

  function formatLength(milliseconds) {
    const units = [['day', DAY], ['hour', HOUR], ['minute', 60_000]];
    const fits = ([, length]) => milliseconds === length || milliseconds >= 2 * length;
    const [unit, length] = units.find(fits) || ['second', 1000];
    const number = Math.floor(milliseconds / length);
    return `${WHOLE.format(number)} ${unit}${number === 1 ? '' : 's'}`;
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

  /* Return the intervals of steps that are in a gap of every server. */
  function findCommonGaps(gaps, count) {
    const covering = new Uint8Array(count);
    gaps.flat().forEach(([first, last]) => {
      for (let step = first; step < last; step += 1) covering[step] += 1;
    });
    const common = [];
    for (let step = 0; step < count; step += 1) {
      const isGoingOn = common.length && common[common.length - 1][1] === step;
      if (covering[step] < gaps.length) continue;
      if (isGoingOn) common[common.length - 1][1] += 1;
      else common.push([step, step + 1]);
    }
    return common;
  }

  /* The steps of a timeline. Bins are steps merged exactly, as render/pictures/ merges them. */
  function createSteps(timeline) {
    const length = timeline.stepSeconds * 1000;
    const stepsFrom = Date.parse(timeline.stepsFrom);
    const end = Date.parse(timeline.window.to);
    const start = timeline.window.from === null ? stepsFrom : Date.parse(timeline.window.from);
    const count = timeline.servers[0].averages.length;
    const findStep = (at) => (at - stepsFrom) / length;
    const findInstant = (step) => Math.min(end, Math.max(start, stepsFrom + step * length));
    const gaps = timeline.servers.map((server) => server.gaps.map(({ from, to }) => [
      Math.max(0, Math.floor(findStep(Date.parse(from)))),
      Math.min(count, Math.ceil(findStep(Date.parse(to)))),
    ]));

    /* Return the figures of a server in the steps from `first` up to, but without, `last`. */
    function merge(n, first, last) {
      const server = timeline.servers[n];
      let [observations, players, lowest, peak] = [0, 0, null, null];
      for (let step = first; step < last; step += 1) {
        const sampleCount = server.sampleCounts[step];
        if (sampleCount) {
          observations += sampleCount;
          // Players are integers, so their sum in a step is one, too.
          players += Math.round(server.averages[step] * sampleCount);
          lowest = lowest === null ? server.lowest[step] : Math.min(lowest, server.lowest[step]);
          peak = peak === null ? server.peak[step] : Math.max(peak, server.peak[step]);
        }
      }
      return { observations, average: observations ? players / observations : null, lowest, peak };
    }

    /* Return the number of steps in a bin: bins are far enough apart, and a daily cycle is shown
       only if it would not look like noise. */
    function chooseBinSteps(steps, width, shownCount) {
      const perPixel = steps * length / width;
      const leastDay = shownCount > 1 ? LEAST_DAY_OF_SEVERAL : LEAST_DAY;
      const shortest = Math.max(perPixel * LEAST_DISTANCE, perPixel * leastDay > DAY ? DAY : 0);
      if (length >= shortest) return 1;
      const isFitting = (one) => one.length >= shortest && one.length % length === 0;
      return (LENGTHS.find(isFitting)?.length ?? Math.ceil(shortest / length) * length) / length;
    }

    /* Divide a view for so many pixels into bins, counted from the end so that the last one is whole,
       and into the runs of each server: the points of its line between gaps of a pixel or more. Points
       are the figures of bins, which end at the gaps of their server only: beside a gap of another
       one, the average of a few hours would look like an event. What is left beside gaps is half a bin
       or more. */
    function divide(view, width, shownCount) {
      const binSteps = chooseBinSteps(view.last - view.first, width, shownCount);
      // A step of which the window has less than half joins the one before.
      const base = Math.round(findStep(end));
      const align = (step, round) => base - round((base - step) / binSteps) * binSteps;
      const low = Math.max(0, align(view.first, Math.ceil));
      const high = Math.min(count, align(view.last, Math.floor));
      const least = (high - low) / width;
      const large = gaps.map((some) => some.filter(([first, last]) => last - first >= least));

      function cut(some) {
        const ends = some.flat().filter((step) => step > low && step < high);
        const fixed = [...new Set([low, ...ends, high])].sort((one, other) => one - other);
        const edges = [low];
        const half = binSteps / 2;
        for (const [n, stop] of fixed.slice(1).entries()) {
          const from = fixed[n];
          for (let edge = align(from + half, Math.floor); edge <= stop - half; edge += binSteps) {
            if (edge > from && edge < stop) edges.push(edge);
          }
          edges.push(stop);
        }
        return edges.slice(1).map((last, n) => (
          { first: edges[n], last, from: findInstant(edges[n]), to: findInstant(last) }));
      }

      function listRuns(n) {
        const found = [[]];
        for (const { first, last, from, to } of cut(large[n])) {
          const figures = merge(n, first, last);
          if (large[n].some((gap) => first >= gap[0] && last <= gap[1])) found.push([]);
          // Slow polling leaves steps empty without a gap.
          if (figures.observations) found[found.length - 1].push({ from, to, figures });
        }
        return found.filter((run) => run.length);
      }

      const isCommon = (gap) => large.every((some) => some.some((one) => String(one) === String(gap)));
      const bins = cut(large[0].filter(isCommon)).map((bin) => (
        { ...bin, figures: gaps.map((_, n) => merge(n, bin.first, bin.last)) }));
      return { bins, runs: gaps.map((_, n) => listRuns(n)), binLength: binSteps * length };
    }

    const commonGaps = findCommonGaps(gaps, count)
      .map(([first, last]) => ({ from: findInstant(first), to: findInstant(last) }));
    return { count, commonGaps, findStep, merge, divide };
  }

  return {
    createClock, createSteps, nameServers, chooseTicks, formatTicks, chooseTimeTicks, formatInterval,
    formatFigures, formatLength, escapeText, removeColorCodes,
  };
})();
