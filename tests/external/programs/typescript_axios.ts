// Call the service through openapi-generator's client for axios.
import axios from "axios";
import { ComparisonApi, Configuration, ServersApi } from "./client";
import { type ErrorResponse, type ServerReference } from "./client";

async function main(url: string, key: string): Promise<void> {
  const configuration = new Configuration({ basePath: url, apiKey: key });
  const servers = new ServersApi(configuration);
  const { id, players, iconUrl } = (await servers.getServer("x-busy", "cfxId")).data.data;
  const references = new Set<ServerReference>([
    { identifier: "busy", by: "id" },
    { identifier: "x-silent", by: "cfxId" },
  ]);
  const comparisons = new ComparisonApi(configuration);
  const comparison = (await comparisons.compareServers({ servers: references })).data;
  const uptimes: (number | null)[] = comparison.data.map((result) => result.uptime);
  if (uptimes.some((uptime) => uptime !== null)) throw new Error("uptime is not null");
  const refused = await servers.getServer("nobody").catch((error) => error);
  if (!axios.isAxiosError<ErrorResponse>(refused) || !refused.response) throw refused;
  const { code, message } = refused.response.data.error;
  const answers = {
    server: [id, players.current, iconUrl],
    comparison,
    error: [refused.response.status, code, message],
  };
  console.log(JSON.stringify(answers));
}

const [url, key] = process.argv.slice(2) as [string, string];
void main(url, key);
