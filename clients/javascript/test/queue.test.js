/** Crawlee's queue on disk, over processes: every page is fetched once in the end, and none fails. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { allow, defer, double, service, site } from './servers.js';

const SCRIPT = fileURLToPath(new URL('./queued.js', import.meta.url));

function started(plan) {
  const child = spawn(process.execPath, [SCRIPT, JSON.stringify(plan)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (data) => (said += data));
  return { child, closed: once(child, 'close'), result: () => JSON.parse(said.trim().split('\n').at(-1)) };
}

async function crawled(plan) {
  const { closed, result } = started(plan);
  await closed;
  return result();
}

async function killed(plan, signal, when) {
  const { child, closed } = started(plan);
  while (!when()) {
    assert.equal(child.exitCode, null);
    await sleep(20);
  }
  child.kill(signal);
  await closed;
}

async function inFolder(body) {
  const folder = await mkdtemp(join(tmpdir(), 'queue-'));
  try {
    await body(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const pagesOf = (origin, count) => Array.from({ length: count }, (_, number) => `${origin.url}/${number}`);
const eachOnce = (origin, count) =>
  assert.deepEqual(
    origin.paths().filter((path) => path !== '/robots.txt').sort(),
    pagesOf({ url: '' }, count).sort(),
  );

// Together, since crawlee waits for a minute until the locks of a stopped run end.
describe('the queue of crawlee', { concurrency: true }, () => {
  test('a service that is silent for a while costs no page', { timeout: 300_000 }, () =>
    inFolder(async (storage) => {
      const answers = [...Array(30).fill('reset'), ...Array(5).fill([503, '{}', {}]), allow()];
      const [asked, origin] = [await double(...answers), await site('')];
      const { fetched, failed } = await crawled({ service: asked.url, storage, urls: pagesOf(origin, 20) });
      assert.deepEqual([fetched.length, failed], [20, []]);
      eachOnce(origin, 20);
      await Promise.all([asked.close(), origin.close()]);
    }),
  );

  test('a wrong key stops the crawler, and the right one fetches every page', { timeout: 300_000 }, () =>
    inFolder(async (storage) => {
      const [refusing, asked, origin] = [await double([401, '{"detail": "Unknown API key."}', {}]), await double(allow()), await site('')];
      const plan = { storage, urls: pagesOf(origin, 20) };
      for (let run = 0; run < 2; run += 1) {
        const { fetched, failed } = await crawled({ ...plan, service: refusing.url, key: 'wrong' });
        assert.deepEqual([fetched, failed, origin.paths()], [[], [], []]);
      }
      const { fetched, failed } = await crawled({ ...plan, service: asked.url, key: 'right' });
      assert.deepEqual([fetched.length, failed], [20, []]);
      eachOnce(origin, 20);
      await Promise.all([refusing.close(), asked.close(), origin.close()]);
    }),
  );

  test('a slow site costs no page', { timeout: 300_000 }, () =>
    inFolder(async (storage) => {
      const [real, origin] = [await service(), await site('User-agent: *\nCrawl-delay: 0.05\n')];
      const plan = { service: real.url, storage, urls: pagesOf(origin, 60), concurrency: 60, maxWait: 0.3 };
      const { fetched, failed } = await crawled(plan);
      assert.deepEqual([fetched.length, failed], [60, []]);
      eachOnce(origin, 60);
      await Promise.all([real.close(), origin.close()]);
    }),
  );

  test('a deferred site leaves the crawler to others', { timeout: 300_000 }, () =>
    inFolder(async (storage) => {
      const [closed, open] = [await site(''), await site('')];
      const asked = await double(defer(3600), allow());
      const urls = [`${closed.url}/dead`, ...pagesOf(open, 10)];
      await killed({ service: asked.url, storage, urls, concurrency: 1 }, 'SIGKILL', () => open.paths().length === 10);
      assert.deepEqual([closed.paths(), asked.asked.length], [[], 11]);
      await Promise.all([asked.close(), closed.close(), open.close()]);
    }),
  );

  test('a redirect whose slot is late goes on from there', { timeout: 300_000 }, () =>
    inFolder(async (storage) => {
      const far = { ...allow(), permit: null, wait: 2, retry_after: 2 };
      const asked = await double(allow(), far, allow());
      const origin = await site('', { '/0': [[302, { location: '/page' }]] });
      const { fetched, failed } = await crawled({ service: asked.url, storage, urls: pagesOf(origin, 1), maxWait: 0.5 });
      assert.deepEqual([fetched.length, failed, origin.paths()], [1, [], ['/0', '/page']]);
      await Promise.all([asked.close(), origin.close()]);
    }),
  );
});
