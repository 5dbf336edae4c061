'use strict';

/* Make the chart of a report interactive. */
(() => {
  const data = document.getElementById('timeline');
  const container = document.querySelector('[data-chart]');
  if (!data || !container) return;
  try {
    globalThis.srvstatChart.mount(container, JSON.parse(data.textContent), container.dataset);
  } catch {
    // The static pictures stay.
  }
})();
