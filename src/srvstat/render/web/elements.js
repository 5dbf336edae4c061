/* Elements of the pages of the service. */

const NUMBER = new Intl.NumberFormat('en');

export const format = (value) => NUMBER.format(value);

export function create(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/* Strangers choose hostnames: the direction of one must not change that of the text around it. */
export const createName = (text) => create(
  'bdi', { textContent: srvstatTimeline.escapeText(srvstatTimeline.removeColorCodes(text)) });

export const createMessage = (text) => create('p', { className: 'message', textContent: text });
