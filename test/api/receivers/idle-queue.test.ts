import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { clockWithoutPolls } from '../../support/clock-without-polls.js';
import { madeReceiver, startEventServer, type EventServer } from '../../support/event-receivers.js';
import { orgApi } from '../../support/org-api.js';
import { count } from '../../support/rows.js';
import '../../support/full-scale-only.js';

/** Renames the organization, which records an event. The name must be new each time. */
const rename = async (admin: Client, name: string) => {
  expect((await orgApi(admin, 'PATCH', '', { name })).status).toBe(200);
};

/**
 * Waits until the sender has recorded that the receiver took its events, and then 50 ms more. In
 * these the sender reads the feed once more, and would find a new event without being woken.
 */
async function untilIdle(app: TestApp): Promise<void> {
  const idle = () => count(app.dataSource, "event_receivers WHERE leased_until = '-infinity'");
  await expect.poll(idle).toBe(1);
  await delay(50);
}

/** Returns true when the server has got an event with a name, or false after 5 seconds. */
async function gets({ received }: EventServer, name: string): Promise<boolean> {
  const isThere = () => received.some(({ text }) => text.includes(name));
  try {
    await expect.poll(isThere, { timeout: 5_000, interval: 5 }).toBe(true);
  } catch {
    return false;
  }
  return true;
}

/**
 * An event appears in the feed when no older transaction of the PostgreSQL server is open. Other
 * tests have such transactions, and this clock has no polls. So single pairs may fail, and one of
 * five must succeed.
 */
it('sends the second of two quick events at its commit, and not at the next poll: once in five', async () => {
  const app = await startTestApp({ clock: clockWithoutPolls });
  const server = await startEventServer();
  try {
    const { client: ada } = await app.enrolled('ada@idle.example');
    await madeReceiver(ada, server.uri);
    let isSent = false;
    for (let pair = 0; pair < 5 && !isSent; pair += 1) {
      await untilIdle(app);
      await rename(ada, `First ${pair}`);
      if (!(await gets(server, `First ${pair}`))) continue;
      await untilIdle(app);
      await rename(ada, `Second ${pair}`);
      isSent = await gets(server, `Second ${pair}`);
    }
    expect(isSent).toBe(true);
  } finally {
    await app.close();
    await server.close();
  }
});
