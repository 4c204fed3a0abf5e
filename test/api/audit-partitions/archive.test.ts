import { createHash } from 'node:crypto';
import { access, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isOver, readMonth } from '#domain/audit/archive/archived-events.repository.js';
import { FIRST_PLACE } from '#domain/audit/feed/audit-feed.repository.js';
import { openPool, TIMEOUTS } from '#platform/database/connection.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { adminCommand, handTo } from '../../support/break-glass.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { RecordingLog } from '../../support/recording-log.js';
import { count, rows } from '../../support/rows.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const EVENTS = 2_345;

/**
 * The details of each event have a newline, a quotation mark and U+2028, which some programs read
 * as the end of a line.
 */
describe('node dist/admin.js archive', () => {
  let database: TestDatabase;
  let app: TestApp;
  let folder: string;
  let n = 0;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    database = await createTestDatabase();
    app = await startTestApp({ database, environment: { SVC_CLEANUP_INTERVAL: '0' } });
    await handTo(app.dataSource, 'production');
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, org_id, details, created_at, epoch, xid)
       SELECT gen_random_uuid(), 'type ' || n, (ARRAY['oauth', 'auth'])[1 + n % 2], gen_random_uuid(), jsonb_build_object('text', E'line\\n"' || chr(8232) || n),
              '2026-01-01 00:00:00+00'::timestamptz + n * interval '571.132765 seconds', n % 2, (n % 50)::text::xid8
       FROM generate_series(0, ${2 * EVENTS - 1}) n`,
    );
    await rows(app.dataSource, `SELECT make_audit_month('oauth', '2026-01-15')`);
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, created_at) SELECT gen_random_uuid(), 'outside', 'oauth', t
       FROM unnest(ARRAY['2025-12-31 23:59:59.999999+00', '2026-02-01 00:00:00+00']::timestamptz[]) t`,
    );
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
    await removeDirectory(folder);
  });

  const archive = (to: string, ofClass = 'oauth', month = '2026-01') =>
    adminCommand(['archive', '--class', ofClass, '--month', month, '--to', to, '--json'], {
      url: database.url,
    });
  const newFile = () => join(folder, `archive-${(n += 1)}.ndjson`);
  const isMissing = (path: string) =>
    access(path).then(
      () => false,
      () => true,
    );

  it('waits for a slow object store, beyond the limits of the service’s own statements', async () => {
    const timeouts = {
      ...TIMEOUTS,
      statement_timeout: 20,
      idle_in_transaction_session_timeout: 20,
    };
    const address = { connectionString: database.url };
    const dataSource = await openPool(address, new RecordingLog(), 1, { timeouts });
    try {
      const read = await dataSource.transaction(async (tx) => {
        const lines = readMonth(tx, { class: 'oauth', month: '2026-01' }, FIRST_PLACE);
        let found = 0;
        for await (const line of lines) {
          found += line.length > 0 ? 1 : 0;
          if (found === 1 || found === 1001) await delay(50);
        }
        return found;
      });
      expect(read).toBe(EVENTS);
    } finally {
      await dataSource.destroy();
    }
  });

  it('copies a month in the order of the places, with a manifest', async () => {
    const to = newFile();
    const { status, stdout, stderr } = await archive(to);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const text = await readFile(to, 'utf8');
    const sha256 = createHash('sha256').update(text).digest('hex');
    const manifest = {
      class: 'oauth',
      month: '2026-01',
      rows: EVENTS,
      bytes: Buffer.byteLength(text),
      sha256,
    };
    expect(JSON.parse(await readFile(`${to}.manifest.json`, 'utf8'))).toEqual(manifest);
    expect(JSON.parse(stdout)).toEqual({ command: 'archive', file: to, ...manifest });
    const found = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string });
    const expected = await rows<{ id: string }>(
      app.dataSource,
      `SELECT id FROM audit_events WHERE class = 'oauth' AND type LIKE 'type %' ORDER BY epoch, xid, id`,
    );
    expect(found.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
    const [columns] = await rows<{ names: string[] }>(
      app.dataSource,
      `SELECT array_agg(attname::text ORDER BY attnum) AS names FROM pg_attribute WHERE attrelid = 'audit_events'::regclass AND attnum > 0`,
    );
    expect(Object.keys(found[0] ?? {}).toSorted()).toEqual(columns?.names.toSorted());
  });

  it('goes on from the last whole line of a copy that was cut, at any byte', async () => {
    const whole = newFile();
    await archive(whole);
    const text = await readFile(whole);
    for (const bytes of [0, 1, text.indexOf('\n'), text.indexOf('\n') + 1, text.length - 1]) {
      const to = newFile();
      await writeFile(`${to}.part`, text);
      await truncate(`${to}.part`, bytes);
      expect((await archive(to)).status).toBe(0);
      expect((await readFile(to)).equals(text)).toBe(true);
      expect(await isMissing(`${to}.part`)).toBe(true);
    }
    // If a run was killed before it wrote the manifest, the next run compares the complete file
    // with the log and writes the manifest.
    const done = newFile();
    await writeFile(done, text);
    expect((await archive(done)).status).toBe(0);
    expect(JSON.parse(await readFile(`${done}.manifest.json`, 'utf8'))).toMatchObject({
      rows: EVENTS,
    });
  });

  it.each<[string, (text: string) => string, number]>([
    ['a changed byte', (text) => text.replace('"type 10"', '"type 11"'), 0],
    ['a missing line', (text) => text.slice(text.indexOf('\n') + 1), 1],
    ['a line too much', (text) => `${text}{}\n`, EVENTS + 1],
    ['a missing last newline', (text) => text.slice(0, -1), EVENTS],
  ])('refuses a file with %s, and writes no manifest', async (_, change, line) => {
    const [whole, to] = [newFile(), newFile()];
    await archive(whole);
    await writeFile(to, change(await readFile(whole, 'utf8')));
    const { status, stderr } = await archive(to);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      line === 0 ? /differs from the log in line \d+/ : `differs from the log in line ${line}.`,
    );
    expect(await isMissing(`${to}.manifest.json`)).toBe(true);
  });

  it('copies administrative events too, and changes no row', async () => {
    const before = await count(app.dataSource, 'audit_events');
    expect((await archive(newFile(), 'admin')).status).toBe(0);
    expect(await count(app.dataSource, 'audit_events')).toBe(before);
  });

  it('waits 2 minutes for the last transactions of a month', async () => {
    const isOverAt = (time: string) =>
      app.dataSource.transaction(async (tx) => {
        await tx.query('CREATE SCHEMA clock');
        await tx.query(
          `CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz RETURN '${time}'::timestamptz`,
        );
        await tx.query('SET LOCAL search_path = clock, pg_catalog');
        const found = await isOver(tx, { class: 'oauth', month: '2026-01' });
        await tx.query('DROP SCHEMA clock CASCADE');
        return found;
      });
    expect(await isOverAt('2026-02-01 00:01:59+00')).toBe(false);
    expect(await isOverAt('2026-02-01 00:02:00+00')).toBe(true);
  });

  it('refuses a month that is not over, wrong usage, and a copy during a clean-up', async () => {
    const now = new Date().toISOString().slice(0, 7);
    expect((await archive(newFile(), 'oauth', now)).stderr).toContain('is not over yet');
    for (const month of ['2026-13', '2026-1', '1999-01']) {
      expect((await archive(newFile(), 'oauth', month)).status).toBe(2);
    }
    expect((await archive(newFile(), 'all')).status).toBe(2);
    await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock(7301004)');
      expect((await archive(newFile())).stderr).toContain('A clean-up runs');
    });
  });
});
