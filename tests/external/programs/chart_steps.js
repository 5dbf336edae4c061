'use strict';

/* Choose ticks, merge steps and format changes with the scripts of the chart and of the explore page:
   `node chart_steps.js timeline.js elements.js`. Reads a JSON object with cases on stdin, and writes
   the results. */
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
// A data URL is a module, whatever the name of the file.
const elements = `data:text/javascript,${encodeURIComponent(readFileSync(process.argv[3], 'utf8'))}`;
import(elements).then(({ formatFirstLast, formatChange, explainMissingChange }) => (
  process.stdout.write(JSON.stringify({
    firstLast: cases.firstLast.map(([first, last]) => formatFirstLast(first, last)),
    changes: cases.changes.map(([change, average]) => formatChange(change, average)),
    reasons: cases.reasons.map(([window, server]) => explainMissingChange(window, server)),
    ...findAll(),
  }))));
const findAll = () => ({
  ticks: cases.ticks.map(([high, most]) => formatTicks(chooseTicks(high, most))),
  times: cases.times.map(([zone, start, end, most]) => chooseTimeTicks(createClock(zone), start, end, most)
    .map(({ at, label }) => [at, label])),
  names: nameServers(cases.servers),
  timelines: cases.timelines.map(mergeAll),
});
