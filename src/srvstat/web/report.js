'use strict';

/* Make the chart of a report interactive. */
(() => {
  const data = document.getElementById('timeline');
  const container = document.querySelector('[data-chart]');
  if (!data || !container) return;

  /* The page has totals, which are shorter than averages and give them exactly. */
  function readTimeline() {
    const timeline = JSON.parse(data.textContent);
    for (const server of timeline.servers) {
      server.averages = server.totals.map((total, step) => (
        total === null ? null : total / server.sampleCounts[step]));
    }
    return timeline;
  }

  try {
    globalThis.srvstatChart.mount(container, readTimeline(), container.dataset);
  } catch {
    // The static pictures stay.
  }
})();
