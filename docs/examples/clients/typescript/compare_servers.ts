// Compare game servers and print a table.
//
// Usage: GATEWAY_KEY=… node out/compare_servers.js URL RANGE SERVER SERVER…
// A server is an id such as harbor-city, or cfxId:ns6r0b.
import { setTimeout as sleep } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

const ATTEMPTS = 3;
const REPEATED = [429, 500];
const TIMEOUT_MS = 15_000;
const HEAD = ["server", "now", "average", "median", "peak", "growth %", "name"];

class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: Schemas["ErrorFields"]["code"],
    message: string,
  ) {
    super(`${status} ${code}: ${message}`);
  }
}

/** Repeat a request after 429, 500 or no answer, at most twice: both operations only read. */
async function fetchRepeatedly(request: Request): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    let seconds = attempt;
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const response = await fetch(request.clone(), { signal });
      await response.clone().arrayBuffer(); // fails if the connection breaks within the body
      if (attempt === ATTEMPTS || !REPEATED.includes(response.status)) return response;
      seconds = Number(response.headers.get("Retry-After") ?? attempt);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
    await sleep(seconds * 1000);
  }
}

/** Return the data of an answer, or throw an ApiError. */
function unwrap<Data>(answer: {
  data?: Data;
  error?: Schemas["ErrorResponse"];
  response: Response;
}): Data {
  if (answer.data !== undefined) return answer.data;
  const { status, statusText } = answer.response;
  // An error of a proxy is not of this type.
  if (!answer.error?.error) throw new Error(`${status} ${statusText}`);
  const { code, message } = answer.error.error;
  throw new ApiError(status, code, message);
}

function buildReference(server: string): Schemas["ServerReference"] {
  return server.startsWith("cfxId:")
    ? { identifier: server.slice("cfxId:".length), by: "cfxId" }
    : { identifier: server, by: "id" };
}

function buildRow(detail: Schemas["ServerDetail"], result: Schemas["ServerResult"]): string[] {
  const growth = result.growth.percentage;
  return [
    result.serverId,
    String(result.currentPlayers),
    format(result.averagePlayers, 1),
    format(result.medianPlayers, 1),
    format(result.peakPlayers, 0),
    (growth !== null && growth >= 0 ? "+" : "") + format(growth, 1),
    // A hostname is a stranger's text: it must not control the terminal.
    detail.hostname.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "?"),
  ];
}

/** Format a figure; without observations it is unknown, not 0. */
function format(figure: number | null, digits: number): string {
  return figure === null ? "-" : figure.toFixed(digits);
}

/** Print rows in columns; all but the first and the last one are numbers. */
function printTable(rows: string[][]): void {
  const widths = HEAD.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  for (const [first, ...rest] of rows) {
    const numbers = rest.slice(0, -1).map((cell, i) => cell.padStart(widths[i + 1]!));
    console.log([first!.padEnd(widths[0]!), ...numbers, rest.at(-1)].join("  "));
  }
}

const [url, range, ...servers] = process.argv.slice(2);
if (!url || !range || servers.length === 0) {
  console.error("usage: node out/compare_servers.js URL RANGE SERVER SERVER...");
  process.exit(1);
}
const client = createClient<paths>({
  baseUrl: url,
  headers: { "X-Gateway-Key": process.env.GATEWAY_KEY ?? "any" },
  fetch: fetchRepeatedly,
});
try {
  const references = servers.map(buildReference);
  const details: Schemas["ServerDetail"][] = [];
  for (const { identifier, by } of references) {
    const params = { path: { identifier }, query: { by } };
    details.push(unwrap(await client.GET("/gateway/v1/servers/{identifier}", { params })).data);
  }
  // A range that is not one of the contract's gets a 400.
  const body = { servers: references, range: range as Schemas["Range"] };
  const { data } = unwrap(await client.POST("/gateway/v1/compare", { body }));
  printTable([HEAD, ...data.map((result, i) => buildRow(details[i]!, result))]);
} catch (error) {
  const { message, cause } = error as Error & { cause?: { code?: string } };
  // The message of fetch is only "fetch failed".
  console.error(`error: ${[message, cause?.code].filter(Boolean).join(": ")}`);
  process.exit(1);
}
