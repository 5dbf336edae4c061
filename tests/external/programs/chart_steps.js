'use strict';

/* Choose ticks and merge steps with the script of the chart: `node chart_steps.js timeline.js`. Reads a
   JSON object with cases on stdin, and writes the results. */
const { readFileSync } = require('node:fs');

require(process.argv[2]);
const {
  chooseTicks, formatTicks, chooseTimeTicks, createClock, createSteps, findScale, nameServers,
} = globalThis.srvstatTimeline;

/* Merge the steps of a view, or of the whole window. */
function mergeAll({ timeline, width, view }) {
  const { start, end, findGaps, divide } = createSteps(timeline);
  const { step, points } = divide(view ?? { from: start, to: end }, width);
  return {
    step,
    points: points.map((own) => own.map(({ from, to, figures, joint }) => {
      const { average, lowest, peak, observedShare, isPartial } = figures;
      return [from, to, average, lowest, peak, observedShare, isPartial, joint];
    })),
    scales: points.map((own) => findScale(own).map(({ from }) => from)),
    gaps: findGaps(points.map((_, n) => n)).map(({ from, to }) => [from, to]),
  };
}

const cases = JSON.parse(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify({
  ticks: cases.ticks.map(([high, most]) => formatTicks(chooseTicks(high, most))),
  times: cases.times.map(([zone, start, end, most]) => chooseTimeTicks(createClock(zone), start, end, most)
    .map(({ at, label }) => [at, label])),
  names: nameServers(cases.servers),
  timelines: cases.timelines.map(mergeAll),
}));
