import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chromium } from 'playwright-core';

import { Client, Disallowed } from 'robots-decisions';
import { guard } from 'robots-decisions/playwright';

import { service, site } from './servers.js';

test('documents of a page are asked about before they are requested, redirects included', async () => {
  const real = await service();
  const origin = await site('User-agent: *\nDisallow: /private/\n', {
    '/open': [[302, { location: '/hop' }]],
    '/closed': [[302, { location: '/private/page' }]],
  });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    const guarding = await guard(page, new Client(real.url, { agent: 'ExampleBot' }), { maxWait: 10 });
    assert.equal((await page.goto(`${origin.url}/open`)).status(), 200);
    assert.equal(page.url(), `${origin.url}/hop`);
    assert.equal(guarding.error, null);
    for (const path of ['/closed', '/private/page']) {
      await assert.rejects(page.goto(origin.url + path), /ERR_BLOCKED_BY_CLIENT/);
      assert.ok(guarding.error instanceof Disallowed);
    }
    assert.ok(!origin.paths().includes('/private/page'));
  } finally {
    await Promise.all([browser.close(), real.close(), origin.close()]);
  }
});
