import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { clockWithoutPolls } from '../../support/clock-without-polls.js';
import { madeReceiver, startEventServer, type EventServer } from '../../support/event-receivers.js';
import { orgApi } from '../../support/org-api.js';
import { count } from '../../support/rows.js';
import '../../support/full-scale-only.js';

/** Lets the audit log record an event of the organization. The name is a new one each time. */
const rename = async (admin: Client, name: string) => {
  expect((await orgApi(admin, 'PATCH', '', { name })).status).toBe(200);
};

/**
 * Waits until the sender has recorded that the receiver took its events. The sender then reads the
 * feed once more, which would find an event that comes at that time.
 */
async function untilIdle(app: TestApp): Promise<void> {
  const idle = () => count(app.dataSource, "event_receivers WHERE leased_until = '-infinity'");
  await expect.poll(idle).toBe(1);
  await delay(50);
}

/** Returns true once the server has an event with a name, and false if the event does not come. */
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
 * An event is in the feed once no older transaction of the PostgreSQL server is open, and other
 * tests have such transactions. No poll finds the event later here, so some pairs may fail.
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
