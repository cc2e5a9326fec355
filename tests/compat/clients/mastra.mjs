// Both methods of @mastra/mem0.
import assert from "node:assert/strict";
import { Mem0Integration } from "@mastra/mem0";
import { apiKey, report, url, user, waitForEvents } from "./report.mjs";

const memory = new Mem0Integration({ config: { apiKey, host: url, user_id: user } });

await report({
  async createMemory() {
    assert.equal(typeof (await memory.createMemory("I live in Porto.")), "string");
    await waitForEvents();
  },
  async searchMemory() {
    assert.match(await memory.searchMemory("Where do I live?"), /User lives in Porto/);
  },
});
