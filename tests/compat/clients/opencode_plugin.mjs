// The memory tools of the OpenCode plugin for a self-hosted server, called as OpenCode calls them.
import assert from "node:assert/strict";
import { report, url, user, waitForEvents } from "./report.mjs";

process.env.MEM0_HOST = url;
process.env.MEM0_USER_ID = user;
const { default: plugin } = await import("opencode-mem0-selfhost");
const client = { app: { log: async () => {} }, session: { get: async () => ({}) } };
const folder = { worktree: "/srv/shop", id: "0123456789" };
const { tool } = await plugin({ $: () => ({ quiet: async () => ({ stdout: "main" }) }), client, project: folder });
const run = async (name, given) => JSON.parse(await tool[name].execute(given, { sessionID: "s1" }));
const rows = (answer) => answer.results ?? answer;
const search = async () => rows(await run("search_memories", { query: "Where do I live?" }));

await report({
  async add_memory() {
    const [line] = rows(await run("add_memory", { text: "I live in Porto." }));
    assert.equal(line.memory, "User lives in Porto");
    await waitForEvents();
  },
  async search_memories() {
    assert.equal((await search())[0].memory, "User lives in Porto");
  },
  async get_memories() {
    // The plugin sends no id: it lists the project.
    const own = rows(await run("get_memories", {})).filter((row) => row.user_id === user);
    assert.deepEqual(own.map((row) => row.memory), ["User lives in Porto"]);
  },
  async "get_memory, update_memory, delete_memory"() {
    const [{ id }] = await search();
    assert.equal((await run("get_memory", { id, memory_id: id })).memory, "User lives in Porto");
    await run("update_memory", { id, memory_id: id, text: "User lives in Lisbon" });
    assert.equal((await run("get_memory", { id, memory_id: id })).memory, "User lives in Lisbon");
    await run("delete_memory", { id, memory_id: id });
    assert.equal(await run("get_memory", { id, memory_id: id }), null);
  },
});
