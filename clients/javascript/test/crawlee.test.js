import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CheerioCrawler, Configuration } from 'crawlee';

import { Client, Disallowed } from 'robots-decisions';
import { permitHooks } from 'robots-decisions/crawlee';

import { TICK, allow, defer, disallow, double, recording, service, site } from './servers.js';

async function crawl(url, urls, options = {}) {
  const came = { fetched: [], failed: [] };
  const crawler = new CheerioCrawler(
    {
      ...permitHooks(new Client(url, { agent: 'ExampleBot', ...options })),
      retryOnBlocked: false,
      sessionPoolOptions: { blockedStatusCodes: [] },
      maxRequestRetries: 1,
      requestHandler: async ({ request }) => void came.fetched.push(request.url),
      failedRequestHandler: async ({ request }, error) => void came.failed.push([request.url, error]),
    },
    new Configuration({ persistStorage: false }),
  );
  await crawler.run(urls);
  return came;
}

test('crawlee keeps the pace, fetches nothing that is disallowed, and reports', async () => {
  const real = await service();
  const origin = await site('User-agent: *\nDisallow: /private/\nCrawl-delay: 0.2\n', {
    '/busy': [[503, { 'retry-after': '1' }], [200, {}]],
    '/moved': [[302, { location: '/private/moved' }]],
    '/near': [[302, { location: '/1?near' }]],
  });
  try {
    const slots = recording();
    const pages = ['/1', '/2', '/3', '/busy', '/near'].map((path) => origin.url + path);
    const closed = ['/moved', '/private/page'].map((path) => origin.url + path);
    const { fetched, failed } = await crawl(real.url, [...pages, ...closed], { fetch: slots.fetch });
    assert.deepEqual(fetched.sort(), pages.sort());
    assert.deepEqual(failed.map(([url]) => url).sort(), closed);
    assert.ok(failed.every(([, error]) => error instanceof Disallowed || error.cause instanceof Disallowed));
    assert.ok(origin.paths().includes('/1?near'));
    assert.deepEqual(origin.paths().filter((path) => path.startsWith('/private/')), []);
    const at = (path) => origin.log.filter((one) => one.path === path).map((one) => one.at);
    assert.deepEqual(slots.early(origin), []);
    assert.ok(slots.shortest() >= 200 - TICK, `${slots.shortest()}`);
    assert.ok(at('/busy')[1] - at('/busy')[0] >= 900);
  } finally {
    await Promise.all([real.close(), origin.close()]);
  }
});

test('a page fails that a redirect in a browser took to a disallowed one', async () => {
  const asked = await double(allow(), disallow());
  const { preNavigationHooks, postNavigationHooks } = permitHooks(new Client(asked.url, { agent: 'A' }));
  const [request, page] = [{ url: 'http://h/from' }, {}];
  await preNavigationHooks[0]({ request, page }, {});
  const response = { url: () => 'http://h/private/', status: () => 200, headers: () => ({}) }; // as Playwright's
  await assert.rejects(postNavigationHooks[0]({ request, page, response }), Disallowed);
  assert.equal(request.noRetry, true);
  await asked.close();
});

test('the hooks report the price that a page asks for', async () => {
  const asked = await double(allow());
  const { preNavigationHooks, postNavigationHooks } = permitHooks(new Client(asked.url, { agent: 'A' }));
  const request = { url: 'http://h/paid' };
  await preNavigationHooks[0]({ request }, {});
  const response = { url: request.url, statusCode: 402, headers: { 'crawler-price': 'USD 0.01' } }; // as got's
  await postNavigationHooks[0]({ request, response });
  assert.deepEqual(asked.reports.map(({ status, price, url }) => [status, price, url]), [[402, 'USD 0.01', request.url]]);
  await asked.close();
});

test('crawlee waits for a deferred page', async () => {
  const asked = await double(defer(1.2), allow());
  const origin = await site('');
  const { fetched } = await crawl(asked.url, [`${origin.url}/page`]);
  assert.deepEqual([fetched, asked.asked.length], [[`${origin.url}/page`], 2]);
  await Promise.all([asked.close(), origin.close()]);
});
