import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { Lines } from '../src/lines.js';

/** A manager of crawlee whose storage fails as often as `failures` says. */
function manager(failures) {
  const reclaimed = [];
  return {
    reclaimed,
    async reclaimRequest(request) {
      if (failures-- > 0) throw new Error('the storage fails');
      reclaimed.push(request.id);
    },
    async isEmpty() {
      return true;
    },
  };
}

test('a request is held while the storage fails, and given back in the end', async () => {
  const [lines, queue, request] = [new Lines(), manager(1), { id: 'a', url: 'http://h/', userData: {}, retryCount: 1 }];
  lines.watch(queue);
  lines.putBack({ request }, lines.of(request.url), request.url);
  await queue.reclaimRequest(request);
  await new Promise(setImmediate);
  assert.deepEqual(queue.reclaimed, []);
  while (!queue.reclaimed.length) await setTimeout(50);
  assert.deepEqual(queue.reclaimed, ['a']);
});

test('origins for which nobody waits are forgotten, and others are not', () => {
  const lines = new Lines();
  const [busy, idle] = [lines.of('http://busy/'), lines.of('http://idle/')];
  assert.equal(lines.enter({ id: 'a' }, busy), true);
  for (let number = 0; number < 10_000; number += 1) lines.of(`http://h${number}/`);
  assert.equal(lines.of('http://busy/'), busy);
  assert.notEqual(lines.of('http://idle/'), idle);
});
