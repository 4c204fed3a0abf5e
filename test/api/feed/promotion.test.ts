import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writePrivateKey } from '@svc/openssh';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { FeedReader, inOrder, organizationOf, writeEvent } from '../../support/feed-reader.js';
import { requires } from '../../support/programs.js';
import { ReplicatedPostgres } from '../../support/replicated-postgres.js';
import { count } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';

const ADA = 'ada@promoted.example';

/** The number of promotions, which follow one another. */
const ROUNDS = atScale({ small: 1, full: 3 });

requires('postgresql').describe('a promotion that loses events', () => {
  const parts = new AsyncDisposableStack();
  let cluster: ReplicatedPostgres;
  let app: TestApp;
  let ada: EnrolledUser;
  let org: string;

  beforeAll(async () => {
    cluster = parts.use(await ReplicatedPostgres.start());
    app = await startTestApp({
      database: { url: cluster.url },
      failoverLimits: { heartbeat: 20, poll: 10 },
      environment: {
        SVC_SSH_CA_KEY: writePrivateKey(generateKeyPairSync('ed25519').privateKey, 'ca'),
      },
    });
    parts.defer(() => app.close());
    ada = await app.enrolled(ADA);
    org = await organizationOf(app.dataSource, ADA);
  });
  afterAll(() => parts.disposeAsync());

  const isReady = async () => (await app.client().get('/health/ready')).status === 200;

  /** Returns a client with a new session, because a loss of commits ends all sessions. */
  async function again() {
    const client = app.client();
    await client.signIn(ADA);
    expect((await client.logIn(ada.key)).status).toBe(200);
    return client;
  }

  it.each(Array.from({ length: ROUNDS }, (_, round) => round + 1))(
    'number %i tells a reader of the lost events, who then reads all later ones once',
    async (round) => {
      if (round > 1) await cluster.rejoin();
      const client = await again();
      const before = new FeedReader(client);
      await before.skip(app.dataSource, org);
      const kept = [await writeEvent(app.dataSource, org), await writeEvent(app.dataSource, org)];
      const reader = before.copy(3);
      await reader.until(kept.length);
      expect(reader.ids).toEqual(kept);
      await cluster.caughtUp();

      cluster.holdReplication();
      await again(); // the service has written this event itself, so that it later notices its loss
      const lost = [await writeEvent(app.dataSource, org), await writeEvent(app.dataSource, org)];
      await expect
        .poll(() => reader.drain().then(() => reader.ids))
        .toEqual(expect.arrayContaining(lost));
      await cluster.killPrimary();
      await cluster.promote();
      await expect.poll(isReady).toBe(true);
      expect(await inOrder(app.dataSource, lost)).toEqual([]);

      const now = await again();
      const later = [await writeEvent(app.dataSource, org), await writeEvent(app.dataSource, org)];
      const beyond = new FeedReader(now, reader.cursor, 3);
      const told = await beyond.ask();
      expect(told).toMatchObject({ status: 409, json: { code: 'feed_restarted' } });
      beyond.cursor = told.json.cursor as string;
      await expect.poll(() => beyond.drain().then(() => beyond.ids)).toContain(later[1]);
      expect(beyond.ids.filter((id) => later.includes(id))).toEqual(later);
      expect(beyond.ids).toEqual(await inOrder(app.dataSource, beyond.ids));
      expect(beyond.ids.filter((id) => kept.includes(id))).toEqual([]);

      const behind = new FeedReader(now, before.cursor, 1);
      await behind.drain();
      expect(behind.ids).toEqual([...kept, ...beyond.ids]);
      const whole = new FeedReader(now, '', 7);
      await whole.drain();
      expect(whole.ids).toEqual(await inOrder(app.dataSource, whole.ids));
      expect(whole.ids).toHaveLength(
        await count(app.dataSource, 'audit_events WHERE org_id = $1', [org]),
      );
    },
  );
});
