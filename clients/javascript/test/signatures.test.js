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

const ASKED = 'sig1=("@authority");nonce="n";tag="web-bot-auth"';
const NOT_SIGNED = { ...allow(0, 'p1'), signed: null, unsigned: 'not-as-asked' };

for (const [what, { status = 401, method = 'GET', answers = [allow(), signed(1)], field = ASKED, times, after }] of Object.entries({
  'a 401 that asks for a signature': { times: 2 },
  'a 403 that asks for a signature': { status: 403, times: 2 },
  'a 429 that asks for a signature': { status: 429, times: 2 },
  'a redirect behind it': { times: 2, after: '/b' },
  'one that the service cannot give': { answers: [allow(), NOT_SIGNED], times: 1 },
  'a page without a slot': { answers: [allow(), { ...allow(), permit: null, wait: 600, retry_after: 600 }], times: 1 },
  'a POST': { method: 'POST', times: 1 },
  'a 404': { status: 404, times: 1 },
  'a 401 that asks for none': { field: null, times: 1 },
})) {
  test(`sign: 'asked' with ${what}`, async () => {
    const [asked, last] = [await double(...answers, allow(0, 'p2')), await site('')];
    const refusal = [status, field === null ? {} : { 'accept-signature': field }];
    const first = await site('', { '/a': [refusal, after === undefined ? refusal : [302, { location: last.url + after }]] });
    const fetched = permittedFetch(new Client(asked.url, { agent: 'A', maxWait: 0 }), { sign: 'asked' });
    await fetched(`${first.url}/a`, { method });
    const pages = first.log.map(({ headers }) => headers);
    assert.equal(pages.length, times);
    assert.equal('signature' in pages[0], false);
    if (times === 2) {
      const questions = asked.asked.map(({ body }) => JSON.parse(body)).filter(({ url }) => url);
      assert.deepEqual(questions.slice(0, 2).map(({ sign, accept_signature: one }) => [sign, one]), [[undefined, undefined], [undefined, ASKED]]);
      assert.deepEqual([pages[1]['signature-input'], pages[1]['user-agent']], ['sig1=();n=1', PROFILE['User-Agent']]);
    }
    assert.deepEqual(last.log.map(({ headers }) => 'signature' in headers), after === undefined ? [] : [false]);
    await Promise.all([asked, first, last].map((server) => server.close()));
  });
}

test('a client that sends no requests is signed for or not', () => {
  assert.throws(() => new Client('http://127.0.0.1:9', { agent: 'A', sign: 'asked' }), /sign="asked" is not true or false/);
});
