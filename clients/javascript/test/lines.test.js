import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { Lines } from '../src/lines.js';

/** A crawler, and the ids that its queue was given back, whose storage fails as often as `failures` says. */
function crawlerOf(failures, requestLockSecs) {
  const reclaimed = [];
  const requestManager = {
    requestLockSecs,
    async reclaimRequest(request) {
      if (failures-- > 0) throw new Error('the storage fails');
      reclaimed.push(request.id);
    },
    async isEmpty() {
      return true;
    },
  };
  const crawler = {
    requestManager,
    async _requestFunctionErrorHandler(error) {
      throw error;
    },
  };
  const fails = (request) => crawler._requestFunctionErrorHandler(new Error('it fails'), { request }, requestManager);
  return { crawler, reclaimed, fails };
}

const requestOf = (id) => ({ id, url: 'http://h/', userData: {}, retryCount: 1, errorMessages: [] });

async function until(done) {
  while (!done()) await setTimeout(20);
}

test('a request is held while the storage fails, and given back in the end', async () => {
  const [lines, { crawler, reclaimed, fails }, request] = [new Lines(3600), crawlerOf(1), requestOf('a')];
  lines.watch(crawler);
  lines.putBack({ request }, lines.of(request.url), request.url);
  await fails(request);
  await new Promise(setImmediate);
  assert.deepEqual(reclaimed, []);
  await until(() => reclaimed.length);
  assert.deepEqual([reclaimed, request.retryCount, request.errorMessages], [['a'], 1, []]);
  await assert.rejects(fails(request), /it fails/); // since it was put back only once
});

test('a request goes back to the queue before its lock ends', async () => {
  const [lines, { crawler, reclaimed, fails }, request] = [new Lines(3600), crawlerOf(0, 0.5), requestOf('a')];
  const line = lines.of(request.url);
  lines.watch(crawler);
  lines.close(line, 3600);
  lines.putBack({ request }, line, request.url);
  await fails(request);
  assert.deepEqual(reclaimed, []);
  await until(() => reclaimed.length);
  assert.deepEqual(line.called.size, 0); // it may not ask, and is held again when it comes
});

test('an origin is given up that is deferred for too long, and others are not', () => {
  const [lines, error] = [new Lines(100), { seconds: 60 }];
  const line = lines.of('http://h/');
  const wait = (seconds) => (line.deferredSince -= seconds);
  lines.deferred(line, error);
  wait(30);
  lines.deferred(line, error);
  assert.equal(lines.givenUp(line), null);
  assert.equal(lines.enter({ id: 'a' }, line), false);
  lines.close(line); // a service that is silent says nothing about the origin
  lines.deferred(line, error);
  wait(41);
  lines.deferred(line, error);
  assert.equal(lines.givenUp(line), error);
  assert.equal(lines.givenUp(lines.of('http://other/')), null);
  assert.equal(lines.enter({ id: 'a' }, line), true); // to fail
});

test('a second request asks while the first waits for its slot, if its own is near enough', () => {
  const lines = new Lines(3600);
  for (const [interval, asking] of [[0.02, 50], [0.5, 2], [2, 2], [2.5, 2], [3, 1], [60, 1]]) {
    const line = lines.of(`http://h${interval}/`);
    lines.granted(line, interval, 5);
    line.opensAt = 0;
    let entered = 0;
    while (lines.enter({ id: entered }, line)) entered += 1;
    assert.equal(entered, asking, `${interval}`);
  }
});

test('of those that asked together, the first turn counts', () => {
  const lines = new Lines(3600);
  const line = lines.of('http://h/');
  lines.granted(line, 0.2, 0);
  const begun = performance.now() / 1000;
  for (const turn of [40, 20, 1280, 60]) lines.turn(line, turn);
  assert.ok(Math.abs(line.opensAt - begun - 20) < 1, `${line.opensAt - begun}`);
  line.opensAt = begun - 1; // it has come
  lines.turn(line, 1300);
  assert.ok(Math.abs(line.opensAt - begun - 1300) < 1, `${line.opensAt - begun}`);
});

test('origins for which nobody waits are forgotten, and others are not', () => {
  const lines = new Lines(3600);
  const [busy, idle] = [lines.of('http://busy/'), lines.of('http://idle/')];
  assert.equal(lines.enter({ id: 'a' }, busy), true);
  for (let number = 0; number < 10_000; number += 1) lines.of(`http://h${number}/`);
  assert.equal(lines.of('http://busy/'), busy);
  assert.notEqual(lines.of('http://idle/'), idle);
});
