import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#platform/clock/clock.js';
import { startEmbeddedPostgres } from '#platform/database/embedded-postgres/embedded-postgres.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { adminCommand, handTo } from '../../support/break-glass.js';
import { CHEAP_SETTINGS, prepareDataDir } from '../../support/cluster-template.js';
import { FeedReader, inOrder, organizationOf, writeEvent } from '../../support/feed-reader.js';
import { providerEnvironment } from '../../support/provider-environment.js';
import { RecordingLog } from '../../support/recording-log.js';
import { rows } from '../../support/rows.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import { TestClock } from '../../support/test-clock.js';
import { urlOf } from '../../support/test-server.js';

const ADA = 'ada@prepared.example';

/** The interval at which the service checks how long events have been delayed, in milliseconds. */
const LOOK = 30_000;

/** Starts a PostgreSQL that allows prepared transactions, which are off by default. */
describe('a prepared transaction', () => {
  const parts = new AsyncDisposableStack();
  const clock = new TestClock(systemClock.milliseconds());
  let url: string;
  let app: TestApp;
  let reader: FeedReader;
  let org: string;

  beforeAll(async () => {
    const folder = await makeTemporaryDirectory();
    parts.defer(() => removeDirectory(folder));
    const dataDir = `${folder}/data`;
    await prepareDataDir(dataDir);
    const settings = { ...CHEAP_SETTINGS, max_prepared_transactions: '5' };
    const server = await startEmbeddedPostgres({ dataDir, log: new RecordingLog(), settings });
    parts.defer(() => server.stop());
    url = urlOf(server, server.database);
    app = await startTestApp({ database: { url }, clock });
    parts.defer(() => app.close());
    reader = new FeedReader((await app.enrolled(ADA)).client);
    org = await organizationOf(app.dataSource, ADA);
  });
  afterAll(() => parts.disposeAsync());
  beforeEach(() => reader.skip(app.dataSource, org));

  /**
   * Writes an event in a transaction, and prepares the transaction under a name. Returns the id of
   * the event.
   */
  async function prepare(name: string): Promise<string> {
    const runner = app.dataSource.createQueryRunner();
    try {
      await runner.query('BEGIN');
      const id = await writeEvent(runner, org);
      await runner.query(`PREPARE TRANSACTION '${name}'`);
      return id;
    } finally {
      await runner.release();
    }
  }

  afterEach(async () => {
    const left = await rows<{ gid: string }>(app.dataSource, 'SELECT gid FROM pg_prepared_xacts');
    for (const { gid } of left) await finish('ROLLBACK', gid);
  });

  const finish = (how: 'COMMIT' | 'ROLLBACK', name: string) =>
    app.dataSource.query(`${how} PREPARED '${name}'`);

  /** Ends the epoch with the same SQL as the confirmation of another server. */
  const endEpoch = () =>
    app.dataSource.transaction(async (tx) => {
      await tx.query("SELECT set_config('svc.audit_epoch', 'ends', true)");
      await tx.query(
        "UPDATE database_identity SET confirmed_at = confirmed_at + interval '1 microsecond'",
      );
    });

  /** Runs `node dist/admin.js check`, and returns its lines about the feed. */
  async function checked(): Promise<string> {
    const [provider] = app.config.upstream.providers;
    const issuer = provider?.type === 'oidc' ? provider.issuer : '';
    const environment = {
      ...providerEnvironment(issuer),
      SVC_BASE_URL: app.baseUrl,
      SVC_SSH_CA_KEY_PATH: app.config.ssh.caKeyPath ?? '',
    };
    await handTo(app.dataSource, 'production');
    const { stdout } = await adminCommand(['check'], { url, environment });
    await handTo(app.dataSource, 'test');
    return stdout
      .split('\n')
      .filter((line) => line.includes('audit feed'))
      .join('\n');
  }

  const warnings = () =>
    app.log
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(
        ({ context, oldestSeconds }) => context === 'security' && oldestSeconds !== undefined,
      );

  it('delays the later events, which the check and the log name, and is read once it commits', async () => {
    const early = await prepare('early');
    const late = await writeEvent(app.dataSource, org);
    expect(await reader.page()).toEqual([]);
    expect(await checked()).not.toContain('waits for an open transaction');
    clock.advance(LOOK);
    expect(warnings()).toEqual([]);

    // The delay is measured from `created_at` by the clock of PostgreSQL, which a test cannot move.
    // The test makes the event itself older instead.
    await app.dataSource.query(
      "UPDATE audit_events SET created_at = created_at - interval '61 seconds' WHERE id = $1",
      [late],
    );
    await expect
      .poll(() => {
        clock.advance(LOOK);
        return warnings();
      })
      .toMatchObject([{ level: 'warn' }]);
    expect(Number(warnings()[0]?.['oldestSeconds'])).toBeGreaterThanOrEqual(61);
    expect(await checked()).toContain('waits for an open transaction');

    expect(await reader.page()).toEqual([]);
    await finish('COMMIT', 'early');
    await reader.drain();
    expect(reader.ids).toEqual([early, late]);
    expect(await checked()).toContain('the oldest event waits 0 seconds');
    expect(await checked()).not.toContain('waits for an open transaction');
  });

  it('that is rolled back lets the feed go on without it', async () => {
    await prepare('given up');
    const late = await writeEvent(app.dataSource, org);
    expect(await reader.page()).toEqual([]);
    await finish('ROLLBACK', 'given up');
    await reader.drain();
    expect(reader.ids).toEqual([late]);
  });

  it('from before the end of an epoch is read once, in pages of any size', async () => {
    const before = await writeEvent(app.dataSource, org);
    await reader.until(1);
    const slow = reader.copy(1);
    const early = await prepare('across');
    await endEpoch();
    const late = await writeEvent(app.dataSource, org);
    await reader.drain();
    expect(reader.ids).toEqual([before]);
    await finish('COMMIT', 'across');
    await reader.drain();
    expect(reader.ids).toEqual([before, early, late]);
    await slow.drain();
    expect(slow.ids).toEqual([early, late]);
    expect(await inOrder(app.dataSource, reader.ids)).toEqual(reader.ids);
  });
});
