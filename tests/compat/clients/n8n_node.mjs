// The operations of the n8n node of Mem0, called as n8n's workflow engine calls a node.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { apiKey, report, url, user } from "./report.mjs";

const require = createRequire(import.meta.url);
const { Mem0 } = require("@mem0/n8n-nodes-mem0/dist/nodes/Mem0/Mem0.node.js");
const node = new Mem0();

// The request of n8n's helper: JSON, the query string, and the header of the credentials.
async function httpRequest(_credentials, { method, url: address, body, qs }) {
  const target = new URL(address);
  for (const [name, value] of Object.entries(qs ?? {})) target.searchParams.set(name, value);
  const response = await fetch(target, {
    method,
    headers: { Authorization: `Token ${apiKey}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return text ? JSON.parse(text) : {};
}

async function run(parameters) {
  const context = {
    getInputData: () => [{ json: {} }],
    getCredentials: async () => ({ apiKey, baseUrl: url }),
    getNode: () => ({ name: "Mem0", type: "mem0", typeVersion: 1, parameters }),
    getNodeParameter: (name, _item, usual) => parameters[name] ?? usual,
    continueOnFail: () => false,
    helpers: { httpRequestWithAuthentication: httpRequest },
  };
  const [rows] = await node.execute.call(context);
  return rows.map((row) => row.json);
}

const say = (content) => ({ operation: "add", userId: user, "messages.message": [{ role: "user", content }] });
const search = { operation: "search", userId: user, query: "Where do I live?" };

await report({
  async add() {
    const [line] = await run(say("I live in Porto."));
    assert.deepEqual([line.event, line.memory], ["ADD", "User lives in Porto"]);
  },
  async search() {
    assert.equal((await run(search))[0].memory, "User lives in Porto");
  },
  async getAll() {
    for (const returnAll of [true, false]) {
      const rows = await run({ operation: "getAll", userId: user, returnAll });
      assert.deepEqual(rows.map((row) => row.memory), ["User lives in Porto"]);
    }
  },
  async "get, update, delete"() {
    const [{ id: memoryId }] = await run(search);
    assert.equal((await run({ operation: "get", memoryId }))[0].memory, "User lives in Porto");
    await run({ operation: "update", memoryId, text: "User lives in Lisbon" });
    assert.equal((await run({ operation: "get", memoryId }))[0].memory, "User lives in Lisbon");
    await run({ operation: "delete", memoryId });
    assert.deepEqual(await run({ operation: "getAll", userId: user, returnAll: true }), []);
  },
});
