import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { Client, Deferred, Disallowed, NotUnderstood, permittedFetch } from 'robots-decisions';

import { TICK, allow, disallow, double, recording, service, site } from './servers.js';

const PAGE = 'http://www.example.com/page';
const running = [];
const started = async (server) => (running.push(server), server);
let real;

before(async () => {
  real = await service();
});
after(async () => {
  await real.close();
  await Promise.all(running.map((server) => server.close()));
});

test('allowed and batch give the verdicts of a real service', async () => {
  const origin = await started(await site('User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n'));
  const client = new Client(real.url, { agent: 'ExampleBot' });
  const verdict = await client.allowed(`${origin.url}/private/a%20b?c=d`);
  assert.equal(verdict.allowed, false);
  assert.deepEqual([verdict.reason, verdict.rule, verdict.line, verdict.interval], ['rule', 'disallow: /private/', 2, 7]);
  await assert.rejects(client.allowed('ftp://host/'), NotUnderstood);
  async function* questions() {
    for (let number = 0; number < 600; number += 1) yield `${origin.url}/${number}`;
    yield [`${origin.url}/private/`, 'OtherBot'];
    yield 'no URL';
  }
  const answers = await all(client.batch(questions()));
  assert.equal(answers.length, 602);
  assert.ok(answers.slice(0, 600).every(({ allowed }) => allowed));
  assert.deepEqual([answers[600].verdict, answers[600].agent], ['disallow', 'OtherBot']);
  assert.equal(answers[601].status, 422);
});

test('fetch keeps the pace, sends nothing that is disallowed, and reports', async () => {
  const origin = await started(
    await site('User-agent: *\nDisallow: /private/\nCrawl-delay: 0.2\n', { '/busy': [[503, { 'retry-after': '600' }]] }),
  );
  const slots = recording();
  const client = new Client(real.url, { agent: 'ExampleBot/1.0', maxWait: 30, fetch: slots.fetch });
  const get = permittedFetch(client, { agent: 'ExampleBot/1.0' });
  const statuses = await Promise.all([1, 2, 3, 4].map(async (number) => (await get(`${origin.url}/${number}`)).status));
  assert.deepEqual(statuses, [200, 200, 200, 200]);
  assert.deepEqual(slots.early(origin), []);
  assert.ok(slots.shortest() >= 200 - TICK, `${slots.shortest()}`);
  assert.equal(origin.log.at(-1).headers['user-agent'], 'ExampleBot/1.0');
  await assert.rejects(get(`${origin.url}/private/page`), (error) => error instanceof Disallowed && error.line === 2);
  assert.equal((await get(`${origin.url}/busy`)).status, 503);
  await assert.rejects(get(`${origin.url}/after`), (error) => error instanceof Deferred && error.seconds > 60);
  assert.ok(!origin.paths().includes('/private/page') && !origin.paths().includes('/after'));
});

test('every hop of a redirect needs a permit, and credentials stay with their origin', async () => {
  const asked = await started(await double(allow(), allow(), disallow()));
  const other = await started(await site('', { '/two': [[302, { location: '/private/' }]] }));
  const origin = await started(await site('', { '/one': [[302, { location: `${other.url}/two` }]] }));
  const get = permittedFetch(new Client(asked.url, { agent: 'A' }));
  await assert.rejects(get(`${origin.url}/one`, { headers: { authorization: 'secret' } }), Disallowed);
  assert.deepEqual(
    asked.asked.map(({ body }) => JSON.parse(body).url),
    [`${origin.url}/one`, `${other.url}/two`, `${other.url}/private/`],
  );
  assert.deepEqual([origin.paths(), other.paths()], [['/one'], ['/two']]);
  assert.equal(origin.log[0].headers.authorization, 'secret');
  assert.equal(other.log[0].headers.authorization, undefined);
});

test('an aborted wait releases its slot', async () => {
  const asked = await started(await double(allow(30, 'held')));
  const abort = new AbortController();
  const waiting = new Client(asked.url, { agent: 'A' }).permit(PAGE, { signal: abort.signal });
  while (asked.asked.length === 0) await new Promise(setImmediate);
  abort.abort();
  await assert.rejects(waiting, { name: 'AbortError' });
  // The answer may have been lost with the request, so only a slot that was known is released.
  const known = new Client(asked.url, {
    agent: 'A',
    fetch: async (...request) => {
      const response = await fetch(...request);
      if (!String(request[0]).endsWith('/outcome')) setTimeout(() => later.abort(), 50);
      return response;
    },
  });
  const later = new AbortController();
  await assert.rejects(known.permit(PAGE, { signal: later.signal }), { name: 'AbortError' });
  assert.deepEqual(asked.reports, [{ path: '/v1/permits/held/outcome', released: true }]);
});

test('an invalid argument is named', async () => {
  const service = 'http://service';
  for (const [url, options, name] of [
    ['service:8080', {}, /service/],
    [service, { key: 'two words' }, /key/],
    [service, { caller: 'a/b' }, /a\/b/],
    [service, { maxWait: NaN }, /maxWait/],
    [service, { unreachable: 'open' }, /open/],
    [service, { agent: ' ' }, /agent/],
    [service, { agent: [] }, /agent/],
    [service, { purposes: 'ai-train' }, /purposes/],
    [service, { maxAge: -1 }, /maxAge/],
    [service, { asOf: 'noon' }, /noon/],
    [service, { log: {} }, /log/],
  ]) {
    assert.throws(() => new Client(url, options), name);
  }
  const client = new Client(service, { agent: 'A' });
  await assert.rejects(client.allowed(PAGE, { purposes: 'ai-train' }), /purposes/);
  await assert.rejects(client.permit(PAGE, { asOf: new Date() }), /asOf/);
  await assert.rejects(client.batch([{ url: PAGE, explain: true }]).next(), /explain/);
  await assert.rejects(client.batch(PAGE).next(), /is one text: pass a list of them/);
});

async function all(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}
