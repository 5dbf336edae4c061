/* Format requests with the script of the page: `node explore_commands.mjs exchange.js ORIGIN`.
   Reads a JSON array of [ids, range, key] on stdin, and writes a command for each. */
import { readFileSync } from 'node:fs';

const [, , script, origin] = process.argv;
globalThis.document = { baseURI: origin };
// A data URL is a module, whatever the name of the file.
const source = encodeURIComponent(readFileSync(script, 'utf8'));
const { buildRequest, formatCurl } = await import(`data:text/javascript,${source}`);
const cases = JSON.parse(readFileSync(0, 'utf8'));
const commands = cases.map(([ids, range, key]) => formatCurl(buildRequest(ids, range), key));
process.stdout.write(JSON.stringify(commands));
