import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { endLeases, roundsUntilDeath, SENDING_STEPS, SLOW } from '../../support/dying-rounds.js';
import { startEventServer, type EventServer } from '../../support/event-receivers.js';
import type { ReplicaArgument } from '../../support/replica.js';
import { rows } from '../../support/rows.js';
import { SCALE } from '../../support/scale.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import '../../support/full-scale-only.js';

/** The number of receivers, each of another organization: so many that both replicas send. */
const RECEIVERS = 20;
/**
 * The steps of sending at which a replica is killed. Each takes seconds, so that only the full
 * scale has all.
 */
const STEPS = SENDING_STEPS.filter(([step]) => SCALE === 'full' || step === 'answered');
/** The number of events that each organization gets in a round. */
const EVENTS = 2;

describe('of two replicas, of which one is killed with SIGKILL', () => {
  let database: TestDatabase;
  let folder: string;
  let app: TestApp;
  let server: EventServer;
  let argument: ReplicaArgument;
  beforeAll(async () => {
    database = await createTestDatabase();
    server = await startEventServer();
    folder = await makeTemporaryDirectory();
    const environment = { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') };
    app = await startTestApp({ database, environment });
    argument = { database: { url: database.url }, environment };
    await rows(
      app.dataSource,
      `WITH organization AS (
         INSERT INTO organizations (id, name, provisioned)
         SELECT gen_random_uuid(), 'crash-' || n || '.example', true FROM generate_series(1, $2::int) n RETURNING id, name
       ), domain AS (
         INSERT INTO organization_domains (org_id, domain, is_primary, verified_at) SELECT id, name, true, now() FROM organization
       ), admin AS (
         INSERT INTO users (id, org_id, email, is_org_admin)
         SELECT gen_random_uuid(), id, 'admin@' || name, true FROM organization RETURNING id, org_id
       )
       INSERT INTO event_receivers (id, org_id, kind, name, url, created_by, address_by, epoch, xid, event_id)
       SELECT gen_random_uuid(), org_id, 'otlp', 'SIEM', $1, id, id, 0, '0', '00000000-0000-0000-0000-000000000000' FROM admin`,
      [server.uri, RECEIVERS],
    );
  });
  afterAll(async () => {
    await app.close();
    await server.close();
    await database.drop();
    await removeDirectory(folder);
  });

  /**
   * Inserts events for each receiver. Returns their ids with their organizations, in the order in
   * which they must arrive.
   */
  async function queue(): Promise<{ org: string; id: string }[]> {
    const written: { org: string; id: string }[] = [];
    for (let n = 0; n < EVENTS; n += 1) {
      written.push(
        ...(await rows<{ org: string; id: string }>(
          app.dataSource,
          `INSERT INTO audit_events (id, type, class, org_id)
           SELECT gen_random_uuid(), 'logout', 'auth', org_id FROM event_receivers RETURNING org_id AS org, id`,
        )),
      );
    }
    return written;
  }

  const waiting = async () =>
    (
      await rows(
        app.dataSource,
        `SELECT FROM event_receivers r CROSS JOIN LATERAL (
           SELECT FROM audit_events e
           WHERE e.org_id = r.org_id AND (e.epoch, e.xid, e.id) > (r.epoch, r.xid, r.event_id) LIMIT 1) e`,
      )
    ).length;

  it.each(STEPS)(
    'with events %s, the other one sends every event in order, once or at most %i times',
    async (step, most) => {
      server.received.splice(0);
      server.answer = () => (step === 'connected' ? 'hang' : 200);
      const written: { org: string; id: string }[] = [];
      await roundsUntilDeath(
        { ...argument, step },
        {
          queue: async () => void written.push(...(await queue())),
          waiting,
          received: () => server.received.length,
        },
      );
      server.answer = () => 200;
      await endLeases((text) => rows(app.dataSource, text), 'event_receivers');
      await expect.poll(waiting, SLOW).toBe(0);
      const sent = server.received.map(({ bytes }) => bytes.toString('latin1'));
      for (const [, own] of Map.groupBy(written, ({ org }) => org)) {
        const places = own.map(({ id }) => sent.flatMap((text, n) => (isIn(text, id) ? [n] : [])));
        for (const each of places) {
          expect(each.length).toBeGreaterThanOrEqual(1);
          expect(each.length).toBeLessThanOrEqual(most);
        }
        const last = places.map((each) => each.at(-1) ?? -1);
        expect(last).toEqual(last.toSorted((a, b) => a - b));
      }
    },
    150_000,
  );
});

/**
 * Returns true if the body of a request has the id of an event, which only the record of this event
 * has.
 */
function isIn(text: string, id: string): boolean {
  return text.includes(id);
}
