/** `sign`: each hop has its own signature, or none. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CheerioCrawler, Configuration } from 'crawlee';

import { Client, permittedFetch } from 'robots-decisions';
import { permitHooks } from 'robots-decisions/crawlee';

import { allow, double, site } from './servers.js';

const FIELDS = ['signature-agent', 'signature-input', 'signature'];
const PROFILE = { 'User-Agent': 'AcmeBot/2.0 (+https://bot.example.com/)', From: 'bot@example.com' };

const signed = (number) => {
  const headers = { 'Signature-Agent': 'sig1="https://bot.example.com"', 'Signature-Input': `sig1=();n=${number}`, Signature: 'sig1=:AA==:' };
  return { ...allow(0, `p${number}`), signed: { method: 'GET', headers: { ...headers, ...PROFILE } }, unsigned: null };
};

const CLIENTS = {
  fetch: async (service, url, options, method) => {
    const get = permittedFetch(new Client(service, { agent: 'A', ...options }));
    await get(url, { method, headers: { 'user-agent': 'A/1', 'Signature-Agent': 'of the page before' } });
  },
  crawlee: async (service, url, options, method) => {
    const headers = { 'User-Agent': 'A/1', 'Signature-Agent': 'of the page before' };
    const crawler = new CheerioCrawler(
      {
        ...permitHooks(new Client(service, { agent: 'A', ...options })),
        maxRequestRetries: 0,
        requestHandler: async () => {},
      },
      new Configuration({ persistStorage: false }),
    );
    await crawler.run([{ url, method, headers, ...(method === 'POST' ? { payload: 'a' } : {}) }]);
    assert.equal(crawler.stats.state.requestsFinished, 1);
  },
};

for (const [name, run] of Object.entries(CLIENTS)) {
  const crawl = async (answers, options, { method = 'GET', hops = 2 } = {}) => {
    const asked = await double(...answers);
    const last = await site('');
    const first = await site('', { '/a': [hops === 2 ? [302, { location: `${last.url}/b` }] : [200, {}]] });
    try {
      await run(asked.url, `${first.url}/a`, options, method);
      return { questions: asked.asked.map(({ body }) => JSON.parse(body)), sent: [...first.log, ...last.log].map(({ headers }) => headers) };
    } finally {
      await Promise.all([asked, first, last].map((server) => server.close()));
    }
  };

  test(`${name}: each hop has a signature of its own, with the User-Agent and From of the profile`, async () => {
    const { questions, sent } = await crawl([signed(1), signed(2)], { sign: true });
    assert.deepEqual(questions.map(({ sign }) => sign), [true, true]);
    assert.deepEqual(sent.map((headers) => headers['signature-input']), ['sig1=();n=1', 'sig1=();n=2']);
    for (const headers of sent) {
      assert.deepEqual([headers['signature-agent'], headers.signature], ['sig1="https://bot.example.com"', 'sig1=:AA==:']);
      assert.deepEqual([headers['user-agent'], headers.from], Object.values(PROFILE));
    }
  });

  test(`${name}: a signature is not carried to the next host`, async () => {
    const { sent } = await crawl([signed(1), { ...allow(), signed: null, unsigned: 'not-https' }], { sign: true });
    assert.equal(sent[0]['signature-input'], 'sig1=();n=1');
    assert.deepEqual(FIELDS.filter((field) => field in sent[1]), []);
  });

  test(`${name}: only a GET is signed`, async () => {
    const { sent } = await crawl([signed(1)], { sign: true }, { method: 'POST', hops: 1 });
    assert.deepEqual(FIELDS.filter((field) => field in sent[0]), []);
    assert.equal(sent[0]['user-agent'], 'A/1');
  });

  test(`${name}: nothing is asked, sent or deleted without sign`, async () => {
    const { questions, sent } = await crawl([signed(1)], {}, { hops: 1 });
    assert.equal('sign' in questions[0], false);
    assert.equal(sent[0]['signature-agent'], 'of the page before');
    assert.equal(sent[0]['signature-input'], undefined);
  });
}

test('the pages of a browser are not signed', async () => {
  const asked = await double(signed(1));
  const { preNavigationHooks } = permitHooks(new Client(asked.url, { agent: 'A', sign: true }));
  const options = {};
  await preNavigationHooks[0]({ request: { url: 'https://h/a' }, page: {} }, options);
  assert.deepEqual([options, 'sign' in JSON.parse(asked.asked[0].body)], [{}, false]);
  await asked.close();
});
