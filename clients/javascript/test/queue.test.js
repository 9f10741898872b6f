/** Crawlee's queue on disk, over processes: every page is fetched once in the end, and none fails. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { allow, defer, double, service, site } from './servers.js';

const SCRIPT = fileURLToPath(new URL('./queued.js', import.meta.url));

/** Seconds of crawlee's locks: the run after a killed one waits for up to twice as long. */
const LOCK = 15;

function started(plan) {
  const child = spawn(process.execPath, [SCRIPT, JSON.stringify(plan)], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) child[stream].on('data', (data) => (said[stream] += data));
  const result = () => {
    const lines = said.stdout.trim().split('\n');
    return { ...JSON.parse(lines.pop()), log: lines.join('\n') + said.stderr };
  };
  return { child, closed: once(child, 'close'), said, result };
}

async function crawled(plan) {
  const { closed, result } = started(plan);
  await closed;
  return result();
}

async function killed(plan, signal, when) {
  const { child, closed, said } = started(plan);
  while (!(await when())) {
    assert.equal(child.exitCode, null, JSON.stringify(said));
    await sleep(20);
  }
  child.kill(signal);
  await closed;
}

/** A folder, and `opened`, whose servers are closed at the end. */
async function inFolder(body) {
  const [folder, servers] = [await mkdtemp(join(tmpdir(), 'queue-')), []];
  const opened = async (server) => servers[servers.push(await server) - 1];
  try {
    await body(folder, opened);
  } finally {
    await Promise.all(servers.map((server) => server.close()));
    await rm(folder, { recursive: true, force: true });
  }
}

/** How many requests the queue on disk has as handled; one that is being written counts as none. */
async function handled(storage) {
  const folder = join(storage, 'request_queues', 'default');
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.json'));
  const requests = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return requests.filter((text) => text.includes('"orderNo": null')).length;
}

const pagesOf = (origin, count) => Array.from({ length: count }, (_, number) => `${origin.url}/${number}`);
const eachOnce = (origin, count) =>
  assert.deepEqual(
    origin.paths().filter((path) => path !== '/robots.txt').sort(),
    pagesOf({ url: '' }, count).sort(),
  );

// Together, since crawlee waits until the locks of a stopped run end.
describe('the queue of crawlee', { concurrency: 4 }, () => {
  test('a service that is silent for a while costs no page', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      const answers = [...Array(30).fill('reset'), ...Array(5).fill([503, '{}', {}]), allow()];
      const [asked, origin] = [await opened(double(...answers)), await opened(site(''))];
      const { fetched, failed, log } = await crawled({ service: asked.url, storage, urls: pagesOf(origin, 20) });
      assert.deepEqual([fetched.length, failed], [20, []]);
      assert.doesNotMatch(log, /WARN|Reclaiming/);
      eachOnce(origin, 20);
    }),
  );

  test('a crawl that is killed while its pages wait fetches every page once', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      let most = 8;
      const granted = new Set(); // pages, not grants: one whose slot has passed on a busy machine asks once more
      const gate = (body) => {
        const { url } = JSON.parse(body);
        return granted.size < most || granted.has(url) ? (granted.add(url), { ...allow(), interval: 0.05 }) : 'reset';
      };
      const [asked, origin] = [await opened(double(gate)), await opened(site(''))];
      const plan = { service: asked.url, storage, urls: pagesOf(origin, 20), concurrency: 5, lockSecs: LOCK };
      // Whatever was granted is fetched and handled, and the others wait.
      await killed(plan, 'SIGKILL', async () => asked.asked.length > most && (await handled(storage)) === most);
      assert.equal(origin.paths().length, most);
      most = Infinity;
      const { fetched, failed } = await crawled(plan);
      assert.deepEqual([fetched.length, failed], [12, []]);
      eachOnce(origin, 20);
    }),
  );

  test('a crawl that is killed at work fetches again what was in flight, and no other page', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      const [asked, origin] = [await opened(double({ ...allow(0.2), interval: 0.05 })), await opened(site(''))];
      const plan = { service: asked.url, storage, urls: pagesOf(origin, 20), concurrency: 3, lockSecs: LOCK };
      await killed(plan, 'SIGKILL', () => origin.paths().length >= 7);
      const { failed } = await crawled(plan);
      assert.deepEqual(failed, []);
      assert.equal(new Set(origin.paths()).size, 20);
      assert.ok(origin.paths().length <= 20 + 3, `${origin.paths()}`);
      assert.equal(await handled(storage), 20);
    }),
  );

  test('a site that stays deferred fails in the end, and nothing else is lost', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      const [closed, open] = [await opened(site('')), await opened(site(''))];
      const asked = await opened(double((body) => (JSON.parse(body).url.startsWith(closed.url) ? defer(0.6) : { ...allow(), interval: 0.05 })));
      const urls = [...pagesOf(closed, 30), ...pagesOf(open, 10)];
      const plan = { service: asked.url, storage, urls, maxWait: 0.2, giveUpAfter: 2 };
      const { fetched, failed, log } = await crawled(plan);
      assert.deepEqual([fetched.sort(), failed.map(([url]) => url).sort()], [pagesOf(open, 10).sort(), pagesOf(closed, 30).sort()]);
      for (const [url, why] of failed) assert.ok(why.startsWith(`${url} is given up, since its site stays deferred for more than giveUpAfter, 2 s: `), why);
      assert.doesNotMatch(log, /WARN|Reclaiming/);
      eachOnce(open, 10);
      assert.deepEqual(closed.paths(), []);
    }),
  );

  test('a wrong key stops the crawler, and the right one fetches every page', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      const [refusing, asked, origin] = [await opened(double([401, '{"detail": "Unknown API key."}', {}])), await opened(double(allow())), await opened(site(''))];
      const plan = { storage, urls: pagesOf(origin, 20) };
      for (let run = 0; run < 2; run += 1) {
        const { fetched, failed, misconfigured, log } = await crawled({ ...plan, service: refusing.url, key: 'wrong' });
        assert.deepEqual([fetched, failed, origin.paths()], [[], [], []]);
        assert.match(misconfigured, /Unknown API key.*Set `key`/);
        assert.equal(log.split('its requests stay in its queue').length, 2);
      }
      const { fetched, failed, misconfigured } = await crawled({ ...plan, service: asked.url, key: 'right' });
      assert.deepEqual([fetched.length, failed, misconfigured], [20, [], null]);
      eachOnce(origin, 20);
    }),
  );

  test('a slow site costs no page', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      const [real, origin] = [await opened(service()), await opened(site('User-agent: *\nCrawl-delay: 0.05\n'))];
      const plan = { service: real.url, storage, urls: pagesOf(origin, 60), concurrency: 60, maxWait: 0.3 };
      const { fetched, failed } = await crawled(plan);
      assert.deepEqual([fetched.length, failed], [60, []]);
      eachOnce(origin, 60);
    }),
  );

  test('a deferred site leaves the crawler to others', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      const [closed, open] = [await opened(site('')), await opened(site(''))];
      const asked = await opened(double(defer(1800), allow()));
      const urls = [`${closed.url}/dead`, ...pagesOf(open, 10)];
      await killed({ service: asked.url, storage, urls, concurrency: 1 }, 'SIGKILL', () => open.paths().length === 10);
      assert.deepEqual([closed.paths(), asked.asked.length], [[], 11]);
    }),
  );

  test('a redirect whose slot is late goes on from there', { timeout: 300_000 }, () =>
    inFolder(async (storage, opened) => {
      const far = { ...allow(), permit: null, wait: 2, retry_after: 2 };
      const asked = await opened(double(allow(), far, allow()));
      const origin = await opened(site('', { '/0': [[302, { location: '/page' }]] }));
      const { fetched, failed } = await crawled({ service: asked.url, storage, urls: pagesOf(origin, 1), maxWait: 0.5 });
      assert.deepEqual([fetched.length, failed, origin.paths()], [1, [], ['/0', '/page']]);
    }),
  );
});
