// What the drivers of npm packages share, as report.py for those of Python.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

export const user = `user-${randomUUID().slice(0, 12)}`;
export const url = process.env.MEMLANE_URL;
export const apiKey = process.env.MEM0_API_KEY;

export async function ask(path, options = {}) {
  const headers = { Authorization: `Token ${apiKey}` };
  return (await fetch(url + path, { headers, ...options })).json();
}

export async function waitForEvents() {
  const { results } = await ask(`/v1/events/?user_id=${user}`);
  assert.ok(results.length, `no event of ${user} reached the server`);
  for (const { id } of results) {
    const event = await ask(`/v1/event/${id}/?wait=60`);
    assert.equal(event.status, "SUCCEEDED", JSON.stringify(event));
  }
}

export async function report(checks) {
  for (const [method, check] of Object.entries(checks)) {
    let fault = "";
    try {
      await check();
    } catch (error) {
      fault = String(error.stack ?? error);
    }
    console.log(JSON.stringify({ method, works: !fault, said: fault }));
  }
  process.exit(0);
}
