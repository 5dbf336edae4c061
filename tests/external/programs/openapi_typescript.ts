// Call the service with openapi-fetch and the types of openapi-typescript.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [url, key] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl: url, headers: { "X-Gateway-Key": key } });
const at = "/gateway/v1/servers/{identifier}";

const found = await client.GET(at, {
  params: { path: { identifier: "x-busy" }, query: { by: "cfxId" } },
});
const request: components["schemas"]["CompareRequest"] = {
  servers: [
    { identifier: "busy", by: "id" },
    { identifier: "x-silent", by: "cfxId" },
  ],
};
const compared = await client.POST("/gateway/v1/compare", { body: request });
const refused = await client.GET(at, { params: { path: { identifier: "nobody" } } });
if (!found.data || !compared.data || !refused.error) throw new Error("not as expected");
const uptimes: (number | null)[] = compared.data.data.map((result) => result.uptime);
if (uptimes.some((uptime) => uptime !== null)) throw new Error("uptime is not null");
const { id, players, iconUrl } = found.data.data;
const { code, message } = refused.error.error;
const answers = {
  server: [id, players.current, iconUrl],
  comparison: compared.data,
  error: [refused.response.status, code, message],
};
console.log(JSON.stringify(answers));
