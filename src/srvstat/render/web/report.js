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

  /* Make the names in the rows buttons. */
  function adoptRows() {
    const table = document.querySelector('.servers');
    const caption = table.querySelector('caption');
    const rows = [...table.querySelectorAll('[data-server]')].map((row) => {
      const name = row.querySelector('.server');
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'server';
      button.setAttribute('aria-pressed', true);
      button.append(...name.childNodes);
      const part = document.createElement('span');
      part.className = 'part';
      name.replaceWith(button, part);
      const cells = ['average', 'lowest', 'peak'].map((figure) => row.querySelector(`[data-figure=${figure}] data`));
      return { row, button, part, cells };
    });
    return { caption, rows, whole: caption.textContent };
  }

  // If this fails, the static picture stays.
  globalThis.srvstatChart.mount(container, readTimeline(), { legend: adoptRows() });
})();
