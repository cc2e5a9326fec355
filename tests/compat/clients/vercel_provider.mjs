// The functions of @mem0/vercel-ai-provider that ask no language model.
import assert from "node:assert/strict";
import {
  addMemories, getMemories, retrieveMemories, searchMemories,
} from "@mem0/vercel-ai-provider";
import { apiKey, report, url, user, waitForEvents } from "./report.mjs";

const config = { host: url, mem0ApiKey: apiKey, user_id: user };
const picture = { type: "file", mediaType: "image/png", data: "https://example.org/a.png" };
const prompt = [{ role: "user", content: [{ type: "text", text: "I live in Porto." }, picture] }];
const QUESTION = "Where do I live?";
const texts = (rows) => rows.map((row) => row.memory);

await report({
  async addMemories() {
    assert.equal((await addMemories(prompt, config)).status, "PENDING");
    await waitForEvents();
  },
  async getMemories() {
    assert.deepEqual(texts(await getMemories(QUESTION, config)), ["User lives in Porto"]);
  },
  async "getMemories with a prompt beyond 8,000 characters"() {
    const long = `${"Porto is where I live. ".repeat(500)}${QUESTION}`;
    assert.deepEqual(texts(await getMemories(long, config)), ["User lives in Porto"]);
  },
  async retrieveMemories() {
    assert.match(await retrieveMemories(prompt, config), /User lives in Porto/);
  },
  async searchMemories() {
    const { results } = await searchMemories(QUESTION, config);
    assert.deepEqual(texts(results), ["User lives in Porto"]);
  },
});
