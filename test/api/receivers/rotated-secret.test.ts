import { afterAll, beforeAll, expect, it } from 'vitest';
import { openOfReceiver } from '../../../src/domain/oauth/event-receivers/receiver-secrets.js';
import { ReceiverSender } from '../../../src/domain/oauth/event-receivers/receiver-sender.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { systemRandom } from '#platform/clock/random.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { madeReceiver, startEventServer, type EventServer } from '../../support/event-receivers.js';
import { MovableClock } from '../../support/movable-clock.js';
import { rows } from '../../support/rows.js';

const NEW = 'the root secret after the change';

let app: TestApp;
let server: EventServer;
beforeAll(async () => {
  app = await startTestApp();
  server = await startEventServer();
});
afterAll(async () => {
  await app.close();
  await server.close();
});

it('the secret of a receiver is sealed again within five minutes where a replica of before sealed it after the start', async () => {
  const { client } = await app.enrolled('ada@rotated.example');
  const { secret } = await madeReceiver(client, server.uri);
  // Nothing is sent to the receiver, so that its secrets need not be used to be sealed again.
  await rows(app.dataSource, "UPDATE event_receivers SET status = 'paused'");
  const sealed = async () =>
    (await rows<{ secret_sealed: string }>(app.dataSource, 'SELECT * FROM event_receivers'))[0]
      ?.secret_sealed ?? '';
  const before = await sealed();
  const clock = new MovableClock();
  const sender = new ReceiverSender({
    dataSource: app.dataSource,
    outboundHttp: app.nest.get(OutboundHttp, { strict: false }),
    clock,
    random: systemRandom,
    secrets: { root: NEW, previousRoot: app.config.secrets.root },
    baseUrl: app.baseUrl,
  });
  sender.onApplicationBootstrap();
  await expect.poll(sealed).not.toBe(before);

  await rows(app.dataSource, 'UPDATE event_receivers SET secret_sealed = $1', [before]);
  clock.advance(300_000);
  sender.wake();
  await expect.poll(sealed).not.toBe(before);
  const alone = { root: NEW, previousRoot: undefined };
  expect(await openOfReceiver(alone, await sealed())).toBe(secret);
  await sender.stopWork();
});
