/** The cases of clients/conformance.json. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Client, Deferred, Disallowed, Misconfigured, NotUnderstood, ServiceUnavailable } from 'robots-decisions';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const AT_ONCE = 8;
const ERRORS = [
  [Disallowed, 'disallowed'],
  [Deferred, 'deferred'],
  [NotUnderstood, 'not_understood'],
  [Misconfigured, 'misconfigured'],
  [ServiceUnavailable, 'unavailable'],
];

/** The options of a client or a call, whose names have underscores in the file. */
function camelCased(members) {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name.replace(/_(.)/g, (_, one) => one.toUpperCase()), value]));
}

function described({ retryAt, retryAfter, ...answer }) {
  return { ...answer, retry_at: retryAt ?? null, retry_after: retryAfter };
}

async function called(client, { permit: page, allowed, batch, report, release, ...options }) {
  const how = camelCased(options);
  const answers = [];
  try {
    if (batch) {
      const questions = batch.map((one) => (typeof one === 'string' ? one : camelCased(one)));
      for await (const answer of client.batch(questions)) answers.push(described(answer));
      return { answers };
    }
    if (allowed) return described(await client.allowed(allowed, how));
    const permit = await client.permit(page, how);
    if (report) await permit.report(report.status, report.retry_after ?? null, report.price ?? null);
    if (release) await permit.release();
    return { granted: permit.granted, interval: permit.interval, version: permit.version, signed: permit.signed };
  } catch (error) {
    const kind = ERRORS.find(([type]) => error instanceof type)?.[1] ?? String(error.stack);
    const { message, reason, rule, line, seconds, retryAt } = error;
    const retryIn = retryAt ? (retryAt - Date.now()) / 1000 : null;
    return { error: kind, message, reason, rule, line, seconds, retry_in: retryIn, answers };
  }
}

async function played({ service, client: options, calls }) {
  const log = [];
  const write = (line) => log.push(line);
  const client = new Client(service, { ...camelCased(options), log: { info: write, warn: write } });
  const begun = performance.now();
  const results = [];
  for (const call of calls) {
    const result = await called(client, call);
    results.push({ ...result, at: (performance.now() - begun) / 1000 });
  }
  await client.close();
  return { results, log };
}

test('every case of the conformance file holds', { timeout: 120_000 }, async () => {
  const server = spawn('.venv/bin/python', ['-m', 'tests.clients.conformance'], { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const [url] = await once(createInterface({ input: server.stdout }), 'line');
    const cases = await (await fetch(`${url}/cases`)).json();
    const left = cases.slice();
    const wrong = [];
    const runs = Array.from({ length: AT_ONCE }, async () => {
      for (let one = left.shift(); one; one = left.shift()) {
        const body = JSON.stringify(await played(one));
        const differences = await (await fetch(`${url}/cases/${one.name}`, { method: 'POST', body })).json();
        if (differences.length) wrong.push([one.name, ...differences]);
      }
    });
    await Promise.all(runs);
    assert.deepEqual(wrong, []);
    assert.ok(cases.length > 100);
  } finally {
    server.kill();
    await once(server, 'close');
  }
});
