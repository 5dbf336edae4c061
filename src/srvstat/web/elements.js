/* Elements and texts of the page of `srvstat serve --explore`. Text is never parsed as HTML. */

const SVG = 'http://www.w3.org/2000/svg';
const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const SIGNED = new Intl.NumberFormat('en', { maximumFractionDigits: 2, signDisplay: 'exceptZero' });

export const format = (value) => (value === null ? '–' : NUMBER.format(value));

export function formatGrowth({ players, percentage }) {
  if (players === null) return '–';
  const signed = SIGNED.format(players);
  return percentage === null ? signed : `${signed} (${SIGNED.format(percentage)}%)`;
}

/* Format a value of the API for people: `current 5, max 16`, `yes`, `eu, public`. */
export function describe(value) {
  if (value === null || value === '') return '–';
  if (Array.isArray(value)) return value.join(', ') || '–';
  if (typeof value === 'object') {
    return Object.entries(value).map(([name, one]) => `${name} ${describe(one)}`).join(', ');
  }
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

export function create(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/* Strangers choose hostnames: the direction of one must not change that of the text around it. */
export const createName = (text) => create(
  'bdi', { textContent: srvstatTimeline.escapeText(srvstatTimeline.removeColorCodes(text)) });

export const createMessage = (text, note = '') => create(
  'p', { className: 'message' }, create('strong', { textContent: text }), note && ` ${note}`);

/* Return a piece of the line that the chart draws for a server. */
export function createSwatch(n) {
  const [swatch, line] = ['svg', 'path'].map((name) => document.createElementNS(SVG, name));
  swatch.setAttribute('class', `swatch series series-${n + 1}`);
  swatch.setAttribute('viewBox', '0 0 22 8');
  swatch.setAttribute('aria-hidden', 'true');
  line.setAttribute('class', 'line');
  line.setAttribute('d', 'M0 4H22');
  swatch.append(line);
  return swatch;
}
