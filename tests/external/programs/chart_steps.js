'use strict';

/* Choose ticks and merge steps with the script of the chart: `node chart_steps.js timeline.js`.
   Reads a JSON object with cases on stdin, and writes the results. */
const { readFileSync } = require('node:fs');

require(process.argv[2]);
const {
  chooseTicks, formatTicks, chooseTimeTicks, createClock, createSteps,
} = globalThis.srvstatTimeline;

function mergeAll({ timeline, width }) {
  const steps = createSteps(timeline);
  const { bins } = steps.divide({ first: 0, last: steps.count }, width, timeline.servers.length);
  return timeline.servers.map((_, n) => {
    const runs = [[]];
    for (const { figures } of bins) {
      const { isGap, observations, average, lowest, peak } = figures[n];
      if (isGap) runs.push([]);
      if (observations) runs[runs.length - 1].push([average, lowest, peak]);
    }
    return runs.filter((run) => run.length);
  });
}

const cases = JSON.parse(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify({
  ticks: cases.ticks.map(([high, most]) => formatTicks(chooseTicks(high, most))),
  times: cases.times.map(([zone, start, end, most]) => chooseTimeTicks(createClock(zone), start, end, most)
    .map(({ at, label }) => [at, label])),
  runs: cases.timelines.map(mergeAll),
}));
