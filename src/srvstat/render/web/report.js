'use strict';

/* Make the chart of a report interactive; the rows of servers are its legend. */
(() => {
  const data = document.getElementById('timeline');
  const container = document.querySelector('[data-chart]');

  /* The page has totals, which are shorter than averages and give them exactly. */
  function readTimeline() {
    const timeline = JSON.parse(data.textContent);
    for (const server of timeline.hold ? [] : timeline.servers) {
      server.averages = server.totals.map((total, step) => (
        total === null ? null : total / server.sampleCounts[step]));
    }
    return timeline;
  }

  // If this fails, the static picture stays.
  const table = document.querySelector('.servers');
  globalThis.srvstatChart.mount(container, readTimeline(), { table });
})();
