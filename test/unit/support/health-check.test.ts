import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { HealthCheck } from '../../support/failover/health-check.js';

/** Blocks this process for some milliseconds, so that nothing else runs in it. */
function standStill(milliseconds: number): void {
  for (const end = performance.now() + milliseconds; performance.now() < end;);
}

it('takes a silent replica for dead, and none because the checking process stood still', async () => {
  let answers = true;
  const replica = createServer((_, answer) => {
    if (answers) answer.end('ok');
  });
  replica.listen(0, 'localhost');
  await once(replica, 'listening');
  const { port } = replica.address() as AddressInfo;
  const check = new HealthCheck(port, { every: 5, answer: 100 });
  try {
    for (let pauses = 0; pauses < 6; pauses += 1) {
      await delay(5);
      standStill(150);
    }
    expect(check.deaths).toEqual([]);
    expect(check.down.aborted).toBe(false);

    answers = false;
    while (!check.down.aborted) await delay(5);
    expect(check.deaths).toHaveLength(1);
  } finally {
    check.stop();
    replica.closeAllConnections();
    replica.close();
  }
});
