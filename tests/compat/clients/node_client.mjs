// Every public method of the official TypeScript client, asked of a real server: prints a line of
// JSON for each, as python_client.py does. Run with MEMLANE_URL and MEM0_API_KEY, beside a
// node_modules that holds mem0ai.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

process.env.MEM0_TELEMETRY = "false";
const { MemoryClient } = await import("mem0ai");

const client = new MemoryClient({ apiKey: process.env.MEM0_API_KEY, host: process.env.MEMLANE_URL });
const newUser = () => `user-${randomUUID().slice(0, 12)}`;
const UNKNOWN_ID = "00000000-0000-0000-0000-000000000001";

async function ended(eventId) {
  const { data } = await client.client.get(`/v1/event/${eventId}/?wait=60`);
  assert.equal(data.status, "SUCCEEDED", JSON.stringify(data));
  return data;
}

async function tell(text, user, options = {}) {
  const answer = await client.add([{ role: "user", content: text }], { userId: user, ...options });
  assert.equal(answer.status, "PENDING", JSON.stringify(answer));
  return ended(answer.eventId);
}

async function stored(text, user, options = {}) {
  const { results } = await tell(text, user, options);
  assert.deepEqual(results.map((line) => line.event), ["ADD"]);
  return results[0].id;
}

const allOf = async (user) => (await client.getAll({ filters: { user_id: user } })).results;

async function refused(work) {
  try {
    await work();
  } catch (error) {
    return String(error.message ?? error);
  }
  assert.fail("it was not refused");
}

const checks = {
  async ping() {
    await client.ping();
    assert.ok(client.projectId && client.organizationId);
  },
  async add() {
    const user = newUser();
    const [line] = (await tell("I live in Porto.", user, { metadata: { someKey: 1 } })).results;
    assert.equal(line.data.memory, "User lives in Porto");
    const [changed] = (await tell("I moved to Lisbon.", user)).results;
    assert.deepEqual([changed.event, changed.old_memory], ["UPDATE", "User lives in Porto"]);
    const [{ metadata }] = await allOf(user);
    assert.deepEqual(metadata, { someKey: 1 });
    const kept = await client.add([{ role: "user", content: "As it is." }], { userId: user, infer: false });
    assert.equal(kept.results[0].data.memory, "As it is.");
  },
  async get() {
    const id = await stored("I like tea.", newUser());
    const found = await client.get(id);
    assert.deepEqual([found.id, found.memory], [id, "User likes tea"]);
    assert.ok(found.createdAt && found.categories.includes("user_preferences"));
    assert.match(await refused(() => client.get(UNKNOWN_ID)), /Memory not found!/);
  },
  async getAll() {
    const user = newUser();
    await tell("I like tea. I live in Bern.", user);
    const page = await client.getAll({ filters: { userId: user }, page: 1, pageSize: 1 });
    assert.deepEqual([page.count, page.results.length], [2, 1]);
    assert.equal((await allOf(user)).length, 2);
  },
  async search() {
    const user = newUser();
    await tell("I like jazz. I live in Bern.", user);
    const { results } = await client.search("jazz", { filters: { user_id: user }, topK: 1 });
    assert.deepEqual(results.map((one) => one.memory), ["User likes jazz"]);
    assert.ok(results[0].score > 0 && results[0].score <= 1);
    const chosen = await client.search("jazz", {
      filters: { user_id: user }, threshold: 1, rerank: true, keywordSearch: true, latestOnly: true, fields: ["memory"],
    });
    assert.deepEqual(chosen.results, [{ id: results[0].id, memory: "User likes jazz" }]);
    const unknown = await client.search("jazz", { filters: { user_id: user }, topK: 1, fields: ["memo"] });
    assert.deepEqual(unknown.results, [{ id: results[0].id }]);
  },
  async update() {
    const id = await stored("I like tea.", newUser());
    const changed = await client.update(id, { text: "Likes rum", metadata: { b: 2 }, expirationDate: "2099-01-01" });
    assert.deepEqual([changed.memory, changed.expirationDate], ["Likes rum", "2099-01-01"]);
    assert.equal((await client.update(id, { expirationDate: null })).expirationDate, null);
  },
  async delete() {
    const user = newUser();
    const answer = await client.delete(await stored("I like tea.", user), { deleteLinked: true });
    assert.equal(answer.message, "Memory deleted successfully!");
    assert.deepEqual(await allOf(user), []);
  },
  async deleteAll() {
    const [user, other] = [newUser(), newUser()];
    await tell("I like tea.", user);
    await tell("I like rum.", other);
    const answer = await client.deleteAll({ userId: user });
    assert.equal((await ended(answer.eventId)).event_type, "DELETE_ALL");
    assert.deepEqual([(await allOf(user)).length, (await allOf(other)).length], [0, 1]);
  },
  async history() {
    const id = await stored("I like tea.", newUser());
    await client.update(id, { text: "Likes rum" });
    const entries = await client.history(id);
    assert.deepEqual(entries.map((one) => one.event), ["ADD", "UPDATE"]);
    assert.equal(entries[1].oldMemory, "User likes tea");
    assert.ok(!Number.isNaN(Date.parse(entries[0].createdAt)));
  },
  async users() {
    const user = newUser();
    await tell("I like tea.", user);
    const page = await client.users({ page: 1, pageSize: 1000 });
    const [mine] = page.results.filter((one) => one.name === user);
    assert.deepEqual([typeof mine.id, mine.type, mine.totalMemories], ["string", "user", 1]);
    assert.ok(page.totalUsers >= 1);
  },
  async deleteUser() {
    const user = newUser();
    await tell("I like tea.", user);
    await client.deleteUser({ entity_id: user, entity_type: "user" });
    assert.deepEqual(await allOf(user), []);
  },
  async deleteUsers() {
    const user = `a/b c@d ${newUser()}`;
    await tell("I like tea.", user);
    const answer = await client.deleteUsers({ userId: user });
    assert.match(answer.message, /deleted/);
    assert.deepEqual(await allOf(user), []);
  },
  async batchUpdate() {
    const id = await stored("I like tea.", newUser());
    const answer = await client.batchUpdate([{ memoryId: id, text: "Likes rum" }]);
    assert.equal(answer.message, "Successfully updated 1 memories");
    assert.equal((await client.get(id)).memory, "Likes rum");
  },
  async batchDelete() {
    const user = newUser();
    const answer = await client.batchDelete([await stored("I like tea.", user)]);
    assert.equal(answer.message, "Successfully deleted 1 memories");
    assert.deepEqual(await allOf(user), []);
  },
  async feedback() {
    const memoryId = await stored("I like tea.", newUser());
    const answer = await client.feedback({ memoryId, feedback: "NEGATIVE", feedbackReason: "no" });
    assert.deepEqual([answer.feedback, answer.feedbackReason], ["NEGATIVE", "no"]);
  },
  async createMemoryExport() {
    const user = newUser();
    await tell("I live in Bern.", user);
    const schema = { type: "object", properties: { home: { type: "string", description: "where one lives" } } };
    const made = await client.createMemoryExport({ schema, filters: { user_id: user } });
    assert.ok(made.id && made.message);
  },
  async getMemoryExport() {
    const user = newUser();
    await tell("I live in Bern.", user);
    const schema = { type: "object", properties: { home: { type: "string", description: "where one lives" } } };
    const made = await client.createMemoryExport({ schema, filters: { user_id: user } });
    const found = await client.getMemoryExport({ memoryExportId: made.id });
    assert.match(found.home, /Bern/);
  },
};

const profileSchema = {
  type: "object",
  properties: { homeTown: { type: "string", description: "the city where they live" } },
};

async function withProfiles() {
  await client.updateProfileSettings({ enabled: true, schema: profileSchema });
  const user = newUser();
  await stored("I live in Bern.", user);
  return user;
}

async function finished(started) {
  const { job } = await client.getProfileJob(started.jobId);
  for (const eventId of job.eventIds) await ended(eventId);
  return (await client.getProfileJob(started.statusUrl)).job;
}

Object.assign(checks, {
  async getProfileSettings() {
    const settings = await client.getProfileSettings();
    assert.ok("enabled" in settings && "capabilities" in settings && "schema" in settings.entities.user);
  },
  async updateProfileSettings() {
    const kept = await client.updateProfileSettings({ enabled: true, schema: profileSchema });
    assert.deepEqual(kept.entities.user.schema, profileSchema);
    const wrong = { type: "object", properties: { home: { type: "string" } } };
    assert.match(await refused(() => client.updateProfileSettings({ schema: wrong })), /description/);
  },
  async generateProfile() {
    const entityId = await withProfiles();
    const started = await client.generateProfile({ entityId, idempotencyKey: entityId });
    assert.deepEqual([started.operation, started.entityCountReserved], ["trigger", 1]);
    const again = await client.generateProfile({ entityId, idempotencyKey: entityId });
    assert.deepEqual([again.jobId, again.replayed], [started.jobId, true]);
    await ended(started.eventId);
  },
  async getProfile() {
    const entityId = await withProfiles();
    await finished(await client.generateProfile({ entityId }));
    const { profile, status, generationCount } = await client.getProfile({ entityId });
    assert.equal(status, "succeeded");
    assert.match(profile.homeTown, /Bern/);
    assert.ok(generationCount >= 1);
    assert.match(await refused(() => client.getProfile({ entityId: newUser() })), /No such user/);
  },
  async sampleProfiles() {
    await withProfiles();
    const started = await client.sampleProfiles({ limit: 2 });
    assert.equal(started.entityIds.length, started.sampled);
    assert.equal((await finished(started)).status, "succeeded");
  },
  async getProfileJob() {
    const entityId = await withProfiles();
    const job = await finished(await client.generateProfile({ entityId }));
    assert.deepEqual([job.total, job.completed, job.succeeded, job.enumerationComplete], [1, 1, 1, true]);
  },
});

const webhook = () =>
  client.createWebhook({
    url: "https://example.org/hook",
    name: "mine",
    projectId: client.projectId,
    eventTypes: ["memory_add"],
  });
const webhooks = async () => await client.getWebhooks({ projectId: client.projectId });

Object.assign(checks, {
  async getProject() {
    assert.ok("customInstructions" in (await client.getProject({})));
  },
  async updateProject() {
    await client.updateProject({ customInstructions: "Keep it short." });
    assert.equal((await client.getProject({})).customInstructions, "Keep it short.");
  },
  async createWebhook() {
    assert.equal(typeof (await webhook()).webhookId, "string");
  },
  async getWebhooks() {
    const { webhookId } = await webhook();
    assert.ok((await webhooks()).some((one) => one.webhookId === webhookId));
  },
  async updateWebhook() {
    const { webhookId } = await webhook();
    await client.updateWebhook({ webhookId, name: "renamed", eventTypes: ["memory_add"] });
    assert.ok((await webhooks()).some((one) => one.webhookId === webhookId && one.name === "renamed"));
  },
  async deleteWebhook() {
    const { webhookId } = await webhook();
    await client.deleteWebhook({ webhookId });
    assert.ok(!(await webhooks()).some((one) => one.webhookId === webhookId));
  },
});

const methods = Object.getOwnPropertyNames(MemoryClient.prototype).filter(
  (name) => name !== "constructor" && !/^_|^(initialize|capture|prepare|fetch|maybe|resolve|await)/.test(name),
);
await client.ping();
for (const method of methods.sort()) {
  let said = "";
  if (!checks[method]) said = "nothing here asks it";
  else
    try {
      await checks[method]();
    } catch (error) {
      said = String(error.message ?? error).slice(0, 300);
    }
  console.log(JSON.stringify({ method, works: !said, said }));
}
