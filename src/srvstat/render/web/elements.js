/* Elements and texts of the page of `srvstat serve --explore`. Text is never parsed as HTML. */

const SVG = 'http://www.w3.org/2000/svg';
const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const LEAST_COVERAGE = 0.8;
/* A percentage of a smaller average, or of a smaller count, would mislead. */
const LEAST_AVERAGE = 1;
const LEAST_COUNT = 10;

export const format = (value) => (value === null ? '–' : NUMBER.format(value));

/* Format a number with so many digits after the point, as Python does. */
const round = (value, digits, options = {}) => value.toLocaleString('en', {
  minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: 'halfEven', ...options,
});
export const formatAverage = (value) => (value === null ? '–' : round(value, 2));

/* The words for changes are those of render/figures.py. Format the first and the last count of a
   window, from the first one and the growth: `120 → 87 -27.5%`. */
export function formatFirstLast(first, rise) {
  if (first === null || rise === null) return '–';
  const text = `${format(first)} → ${format(first + rise)}`;
  if (first < LEAST_COUNT) return text;
  return `${text} ${round(100 * rise / first, 1, { signDisplay: 'exceptZero' })}%`;
}

/* Format the change of an average, of which `average` is the later one: `+12.34 +5.3%`. */
export function formatChange(change, average) {
  if (change === null) return '–';
  const sign = { signDisplay: 'exceptZero' };
  const players = round(change.players, 2, sign);
  if (change.percentage === null || average - change.players < LEAST_AVERAGE) return players;
  return `${players} ${round(change.percentage, 1, sign)}%`;
}

/* Format the length of a window: `30 days`, `day`. */
export const formatWindowLength = ({ from, to }) => (
  srvstatTimeline.formatLength(Date.parse(to) - Date.parse(from)).replace(/^1 (\w+)$/, '$1'));

/* Say why a server has no change: `the 30 days before were observed for 46.6% only`. */
export function explainMissingChange(window, { coverage, previousCoverage }) {
  const length = formatWindowLength(window);
  const were = /^[0-9]/.test(length) ? 'were' : 'was';
  if (previousCoverage === null) return `the snapshot does not have the ${length} before`;
  if (!previousCoverage) return `the ${length} before ${were} not observed`;
  return previousCoverage < LEAST_COVERAGE
    ? `the ${length} before ${were} observed for ${formatShare(previousCoverage)} only`
    : `the ${length} of the window ${were} observed for ${formatShare(coverage ?? 0)} only`;
}

/* Format a share in percent. Only a whole is `100%`. */
const formatShare = (share) => (
  `${round(share < 1 ? Math.min(100 * share, 99.9) : 100 * share, 1).replace(/\.0$/, '')}%`);

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
