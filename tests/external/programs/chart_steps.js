'use strict';

/* Choose ticks and merge steps with the script of the chart: `node chart_steps.js timeline.js`.
   Reads a JSON object with cases on stdin, and writes the results. */
const { readFileSync } = require('node:fs');

require(process.argv[2]);
const {
  chooseTicks, formatTicks, chooseTimeTicks, createClock, createSteps, nameServers,
} = globalThis.srvstatTimeline;

function mergeAll({ timeline, width }) {
  const steps = createSteps(timeline);
  const { runs } = steps.divide({ first: 0, last: steps.count }, width, timeline.servers.length);
  return runs.map((some) => some.map((run) => (
    run.map(({ figures: { average, lowest, peak } }) => [average, lowest, peak]))));
}

const cases = JSON.parse(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify({
  ticks: cases.ticks.map(([high, most]) => formatTicks(chooseTicks(high, most))),
  times: cases.times.map(([zone, start, end, most]) => chooseTimeTicks(createClock(zone), start, end, most)
    .map(({ at, label }) => [at, label])),
  names: nameServers(cases.servers),
  runs: cases.timelines.map(mergeAll),
}));
