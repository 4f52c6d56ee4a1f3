// Does with the SDK of TypeScript what main.go does with those of Go: typescript.mjs legacy|modern ADDRESS
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [era, address] = process.argv.slice(2);
const version = era === 'modern' ? '2026-07-28' : '2025-11-25';
const sessions = 9; // one more than a token may have; the one that is idle longest ends
const atOnce = 80; // calls; 64 requests may be under way, and those beyond wait for the others
const call = { name: 'list_prs', arguments: { repo_owner: 'demo', repo_name: 'home-cluster' } };
const invalidParams = -32602;

let takeBack; // takes a call back as soon as its request is sent; undefined: none is to be taken back

async function sendRequest(url, init) {
  const answer = fetch(url, init);
  if (takeBack && init?.body?.includes('"tools/call"')) {
    setImmediate(takeBack); // before an answer can be read
    takeBack = undefined;
  }
  return answer;
}

async function connect() {
  const client = new Client({ name: 'typescript', version: '1' },
    { versionNegotiation: { mode: era === 'modern' ? { pin: version } : 'legacy' } });
  await client.connect(new StreamableHTTPClientTransport(new URL(address), {
    fetch: sendRequest,
    requestInit: { headers: { Authorization: `Bearer ${process.env.CLAUDEOPS_AGENT_TOKEN}` } },
  }));
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  assert.notEqual((await client.listTools()).tools.length, 0);
  return client;
}

async function callTool(client, options) {
  const result = await client.callTool(call, options);
  assert.ok(!result.isError, JSON.stringify(result.structuredContent));
}

const all = [];
for (let i = 0; i < sessions; i++) {
  all.push(await connect());
}
const last = all.at(-1);
await callTool(last);
const sent = new AbortController();
takeBack = () => sent.abort();
await assert.rejects(callTool(last, { signal: sent.signal }));
assert.ok(sent.signal.aborted, 'the call failed before it was taken back');
await Promise.all(Array.from({ length: atOnce }, () => callTool(last)));
await assert.rejects(last.readResource({ uri: 'claudeops://nowhere' }), { code: invalidParams });
assert.notEqual((await last.listTools()).tools.length, 0);
await Promise.all(all.map((client) => client.close()));
