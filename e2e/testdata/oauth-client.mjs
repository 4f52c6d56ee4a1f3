// A client of MCP as the official SDK has it, which knows the address of a server and nothing else. It prints the
// address that its person opens, waits for the code at its own, and makes one call; then it loses its access token and
// makes the call again. argv: the folder of the SDK, the server, the name of a tool, its arguments.
import http from "node:http";
import { pathToFileURL } from "node:url";

const [sdk, server, name, args] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${sdk}/dist/esm/client/${file}`).href);
const { Client } = await load("index.js");
const { StreamableHTTPClientTransport } = await load("streamableHttp.js");

const listener = http.createServer();
await new Promise((done) => listener.listen(0, "127.0.0.1", done));
const state = crypto.randomUUID();
const kept = {};
const provider = {
  redirectUrl: `http://127.0.0.1:${listener.address().port}/callback`,
  get clientMetadata() {
    return { client_name: "An SDK's client", redirect_uris: [this.redirectUrl], token_endpoint_auth_method: "none" };
  },
  state: () => state,
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: (url) => { console.log(url.href); },
};
const came = new Promise((done) => listener.on("request", (request, response) => {
  response.end("You can close this window.");
  done(new URL(request.url, provider.redirectUrl).searchParams);
}));
const client = new Client({ name: "sdk", version: "1" });
const connect = () => client.connect(new StreamableHTTPClientTransport(new URL(server), { authProvider: provider }));
const asked = new StreamableHTTPClientTransport(new URL(server), { authProvider: provider });
try {
  await client.connect(asked);
  throw new Error("it was let in without a person");
} catch (error) {
  if (error.constructor.name !== "UnauthorizedError") throw error;
}
const answer = await came;
listener.close();
if (answer.get("state") !== state || answer.get("iss") !== new URL(server).origin) throw new Error(`${answer}`);
if (answer.has("error")) {
  console.log(JSON.stringify({ error: answer.get("error") }));
  process.exit(0);
}
await asked.finishAuth(answer.get("code"));
await connect();
const call = async () => (await client.callTool({ name, arguments: JSON.parse(args) })).structuredContent;
const first = await call(), refresh = kept.tokens.refresh_token;
kept.tokens = { ...kept.tokens, access_token: "cops_expired" };
const second = await call();
if (kept.tokens.refresh_token === refresh) throw new Error("the refresh token was not exchanged");
console.log(JSON.stringify({ first, second }));
await client.close();
process.exit(0);
