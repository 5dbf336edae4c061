/* Send requests from a page of the service, and write a HAR file with puppeteer-har: `node
   record_with_puppeteer.mjs CHROMIUM URL FILE REQUESTS`. The requests are JSON: each a method, path,
   key and body. */
import puppeteer from 'puppeteer';
import PuppeteerHar from 'puppeteer-har';

const [, , executablePath, url, path, requests] = process.argv;
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic'];
const browser = await puppeteer.launch({ executablePath, args });
const send = async (address, request) => (await fetch(address, request)).text();

/* puppeteer-har asks for a body with the head of the response, and leaves it out if it comes later. */
function waitForBodies(client) {
  const waiting = new Map();
  client.on('Network.loadingFinished', ({ requestId }) => waiting.get(requestId)?.());
  const ask = client.send.bind(client);
  client.send = async (method, params) => {
    if (method === 'Network.getResponseBody') {
      await new Promise((resolve) => waiting.set(params.requestId, resolve));
    }
    return ask(method, params);
  };
}

try {
  const page = await browser.newPage();
  const har = new PuppeteerHar(page);
  await har.start({ path, saveResponse: true }); // it ignores pages that were opened before
  waitForBodies(har.client);
  await page.goto(`${url}/healthz`);
  for (const [method, target, key, body] of JSON.parse(requests)) {
    const type = body && { 'Content-Type': 'application/json' };
    const headers = { 'X-Gateway-Key': key, ...type };
    await page.evaluate(send, url + target, { method, headers, body: body ?? undefined });
  }
  await har.stop();
} finally {
  await browser.close();
}
