// The memory for LangChain in @mem0/community. Its clear() asks the server for nothing.
import assert from "node:assert/strict";
import { Mem0Memory } from "@mem0/community";
import { apiKey, ask, report, url, user, waitForEvents } from "./report.mjs";

const { org_id: organizationId, project_id: projectId } = await ask("/v1/ping/");
const memory = new Mem0Memory({
  apiKey, sessionId: user, mem0Options: { host: url, organizationId, projectId },
});

await report({
  async saveContext() {
    await memory.saveContext({ input: "I live in Porto." }, { output: "Noted." });
    await waitForEvents();
  },
  async "loadMemoryVariables: search"() {
    const { history } = await memory.loadMemoryVariables({ input: "Where do I live?" });
    assert.match(history, /User lives in Porto/);
  },
  async "loadMemoryVariables: list"() {
    const { history } = await memory.loadMemoryVariables({});
    assert.match(history, /User lives in Porto/);
  },
});
