// Call the service through openapi-generator's client for fetch.
import { ComparisonApi, Configuration, ErrorResponseFromJSON, ResponseError } from "./client";
import { ServersApi, type ServerReference } from "./client";

async function main(url: string, key: string): Promise<void> {
  const configuration = new Configuration({ basePath: url, apiKey: key });
  const servers = new ServersApi(configuration);
  const { id, players, iconUrl } = (
    await servers.getServer({ identifier: "x-busy", by: "cfxId" })
  ).data;
  const references = new Set<ServerReference>([
    { identifier: "busy", by: "id" },
    { identifier: "x-silent", by: "cfxId" },
  ]);
  const comparison = await new ComparisonApi(configuration).compareServers({
    compareRequest: { servers: references },
  });
  const uptimes: (number | null)[] = comparison.data.map((result) => result.uptime);
  if (uptimes.some((uptime) => uptime !== null)) throw new Error("uptime is not null");
  const refused = await servers.getServer({ identifier: "nobody" }).catch((error) => error);
  if (!(refused instanceof ResponseError)) throw refused;
  const { code, message } = ErrorResponseFromJSON(await refused.response.json()).error;
  const answers = {
    server: [id, players.current, iconUrl],
    comparison,
    error: [refused.response.status, code, message],
  };
  console.log(JSON.stringify(answers));
}

const [url, key] = process.argv.slice(2) as [string, string];
void main(url, key);
