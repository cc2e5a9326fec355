// What applications count on in the TypeScript client before version 3: prints a line of JSON for
// each method, as node_client.mjs does.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

process.env.MEM0_TELEMETRY = "false";
globalThis.window ??= undefined;
const { MemoryClient } = await import("mem0ai");

const url = process.env.MEMLANE_URL;
const headers = { Authorization: `Token ${process.env.MEM0_API_KEY}` };
const { org_id, project_id } = await (await fetch(`${url}/v1/ping/`, { headers })).json();
const client = new MemoryClient({
  apiKey: process.env.MEM0_API_KEY, host: url, organizationId: org_id, projectId: project_id,
});
const user = `user-${randomUUID().slice(0, 12)}`;
const said = [{ role: "user", content: "I live in Porto." }];

async function ended(eventId) {
  const event = await (await fetch(`${url}/v1/event/${eventId}/?wait=60`, { headers })).json();
  assert.equal(event.status, "SUCCEEDED", JSON.stringify(event));
  return event;
}

let id;
const checks = {
  async add() {
    const queued = await client.add(said, { user_id: user });
    assert.ok(Array.isArray(queued), JSON.stringify(queued));
    const [event] = await Promise.all(queued.map((line) => ended(line.event_id)));
    id = event.results[0].id;
    const kept = await client.add(said, { user_id: `${user}-b`, infer: false });
    assert.deepEqual(kept.map((line) => line.event), ["ADD"]);
  },
  async get() {
    assert.equal((await client.get(id)).memory, "User lives in Porto");
  },
  async getAll() {
    assert.deepEqual((await client.getAll({ user_id: user })).map((row) => row.id), [id]);
  },
  async search() {
    for (const options of [{ user_id: user }, { api_version: "v2", filters: { user_id: user } }]) {
      const rows = await client.search("Where do I live? In Porto?", options);
      assert.deepEqual(rows.map((row) => row.id), [id], JSON.stringify(rows));
    }
  },
  async history() {
    assert.deepEqual((await client.history(id)).map((entry) => entry.event), ["ADD"]);
  },
  async batchUpdate() {
    await client.batchUpdate([{ memoryId: id, text: "Lives in Lisbon" }]);
    assert.equal((await client.get(id)).memory, "Lives in Lisbon");
  },
  async users() {
    const { results } = await client.users();
    assert.ok(results.some((row) => row.name === user));
  },
  async delete() {
    await client.delete(id);
    assert.deepEqual(await client.getAll({ user_id: user }), []);
  },
  async deleteAll() {
    await client.deleteAll({ user_id: `${user}-b` });
    assert.deepEqual(await client.getAll({ user_id: `${user}-b` }), []);
  },
};

for (const [method, check] of Object.entries(checks)) {
  let fault = "";
  try {
    await check();
  } catch (error) {
    fault = String(error.message ?? error);
  }
  console.log(JSON.stringify({ method, works: !fault, said: fault }));
}
process.exit(0);
