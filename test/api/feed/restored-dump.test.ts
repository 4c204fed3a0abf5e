import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Client as Connection } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { renameProvider } from '../../support/break-glass.js';
import { startDebianPostgres, type DebianPostgres } from '../../support/debian-postgres.js';
import { FeedReader, inOrder, organizationOf, writeEvent } from '../../support/feed-reader.js';
import { requires } from '../../support/programs.js';
import { count } from '../../support/rows.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import '../../support/full-scale-only.js';

const ADA = 'ada@restored.example';

/** By how many transaction ids the first cluster is ahead of the new one. */
const AHEAD = 20_000;

requires('postgresql', 'pg_dump', 'pg_restore').describe(
  'a dump that is restored into a new cluster',
  () => {
    const parts = new AsyncDisposableStack();
    let folder: string;
    let old: DebianPostgres;
    let fresh: DebianPostgres;

    beforeAll(async () => {
      folder = await makeTemporaryDirectory();
      parts.defer(() => removeDirectory(folder));
      [old, fresh] = await Promise.all([startDebianPostgres(), startDebianPostgres()]);
      for (const postgres of [old, fresh]) {
        parts.defer(() => postgres.stop());
        await run(postgres.url('postgres', 'postgres'), 'CREATE ROLE svc LOGIN');
        await run(postgres.url('postgres', 'postgres'), 'CREATE DATABASE svc OWNER svc');
      }
      await run(
        old.url('postgres', 'postgres'),
        `DO $$ BEGIN
           FOR i IN 1..${AHEAD} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;
         END $$`,
      );
    });
    afterAll(() => parts.disposeAsync());

    async function run(url: string, statement: string): Promise<void> {
      const connection = new Connection({ connectionString: url });
      await connection.connect();
      await connection.query(statement);
      await connection.end();
    }

    /**
     * Starts the service. With these limits it does not wait for reports of the processes that the
     * dump names.
     */
    const started = (postgres: DebianPostgres) =>
      startTestApp({
        failoverLimits: { recent: 1_000, patience: 1_000 },
        database: { url: postgres.url('svc', 'svc') },
        environment: { SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key') },
      });

    /**
     * Returns a client with a new session, because the first start after a restore ends all
     * sessions.
     */
    async function again(app: TestApp, { key }: EnrolledUser) {
      await renameProvider(app);
      const client = app.client();
      await client.signIn(ADA);
      expect((await client.logIn(key)).status).toBe(200);
      return client;
    }

    it('has each event of before once, then the new ones, and tells a reader of what it lacks', async () => {
      const first = await started(old);
      const ada = await first.enrolled(ADA);
      const org = await organizationOf(first.dataSource, ADA);
      const reader = new FeedReader(ada.client);
      await reader.skip(first.dataSource, org);
      const kept: string[] = [];
      for (let n = 0; n < 10; n += 1) kept.push(await writeEvent(first.dataSource, org));
      await reader.until(kept.length);
      const [sixth = '', ...others] = kept.slice(5);
      const middle = new FeedReader(ada.client, '', 1);
      while (!middle.ids.includes(sixth)) await middle.page();

      const dump = join(folder, 'svc.dump');
      execFileSync('pg_dump', ['--format=custom', `--file=${dump}`, old.url('svc', 'svc')]);
      const lost = await writeEvent(first.dataSource, org);
      await reader.until(kept.length + 1);
      expect(reader.ids).toEqual([...kept, lost]);
      await first.close();
      const restore = ['--no-owner', '--exit-on-error', '--single-transaction'];
      execFileSync('pg_restore', [`--dbname=${fresh.url('svc', 'svc')}`, ...restore, dump]);

      const second = await started(fresh);
      try {
        const { dataSource } = second;
        // The restored events have higher transaction ids than any transaction of this cluster.
        const ahead = 'audit_events WHERE xid > pg_snapshot_xmax(pg_current_snapshot())';
        expect(await count(dataSource, ahead)).toBeGreaterThan(kept.length);
        const client = await again(second, ada);
        const later = [await writeEvent(dataSource, org), await writeEvent(dataSource, org)];
        const until = later.at(-1) ?? '';

        const goesOn = new FeedReader(client, middle.cursor, 3);
        await expect.poll(() => goesOn.drain().then(() => goesOn.ids)).toContain(until);
        expect(goesOn.ids.slice(0, others.length)).toEqual(others);
        expect(goesOn.ids).toEqual(await inOrder(dataSource, goesOn.ids));
        expect(goesOn.ids.filter((id) => later.includes(id))).toEqual(later);
        expect(new Set(goesOn.ids).size).toBe(goesOn.ids.length);

        const beyond = new FeedReader(client, reader.cursor, 3);
        const told = await beyond.ask();
        expect(told).toMatchObject({ status: 409, json: { code: 'feed_restarted' } });
        beyond.cursor = told.json.cursor as string;
        await beyond.drain();
        expect(beyond.ids).toEqual(goesOn.ids.slice(others.length));

        const whole = new FeedReader(client, '', 3);
        await whole.drain();
        expect(whole.ids.filter((id) => kept.includes(id))).toEqual(kept);
        expect(whole.ids).toEqual(await inOrder(dataSource, whole.ids));
        expect(whole.ids).toHaveLength(
          await count(dataSource, 'audit_events WHERE org_id = $1', [org]),
        );
      } finally {
        await second.close();
      }
    });
  },
);
