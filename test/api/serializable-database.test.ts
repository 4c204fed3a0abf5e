import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '#platform/database/open-database.js';
import { sql } from '#platform/database/statements/sql.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { RateLimitsRepository } from '#platform/rate-limit/buckets/rate-limits.repository.js';
import { DatabaseBuckets } from '#platform/rate-limit/buckets/database-buckets.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization } from '../support/scim-organization.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const AT_ONCE = 20;
const twenty = Array.from({ length: AT_ONCE }, (_, n) => n);

describe('a database whose default isolation level is serializable', () => {
  const parts = new AsyncDisposableStack();
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    parts.defer(() => database.drop());
    const direct = await connect();
    await direct.query(
      `ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`,
    );
    await direct.destroy();
  });
  afterAll(() => parts.disposeAsync());

  /**
   * Opens a pool whose connections have only the settings of the database, like those of a pooler
   * in transaction mode.
   */
  function connect(): Promise<DataSource> {
    const { url } = database;
    return new DataSource({ type: 'postgres', url, extra: { max: AT_ONCE } }).initialize();
  }

  describe('under the service', () => {
    let app: TestApp;
    beforeAll(async () => {
      app = await startTestApp({ database });
      parts.defer(() => app.close());
    });

    it('removes 20 people at once, and issues 20 certificates to one person at once', async () => {
      const { scim, admin } = await foundOrganization(app, 'serializable.example');
      const made = await Promise.all(
        twenty.map((n) => scim('POST', '/Users', { userName: `p${n}@serializable.example` })),
      );
      expect(made.map(({ status }) => status)).toEqual(twenty.map(() => 201));
      const ended = await Promise.all(
        made.map(({ json }) => scim('DELETE', `/Users/${String(json.id)}`)),
      );
      expect(ended.map(({ status }) => status)).toEqual(twenty.map(() => 204));
      const issued = await Promise.all(
        twenty.map(() =>
          admin.client.send('POST', '/v1/credentials/ssh', {
            body: { public_key: newPublicKeyLine() },
            address: newAddress(),
          }),
        ),
      );
      expect(issued.map(({ status }) => status)).toEqual(twenty.map(() => 200));
    });

    it('is named at the start, because a pooler loses the setting of the service', async () => {
      const log = new RecordingLog();
      const opened = await openDatabase(database.config, 'test', log);
      await opened.close();
      const named = log.lines.filter((line) =>
        line.includes('default_transaction_isolation is serializable'),
      );
      expect(named).toHaveLength(1);
    });
  });

  describe('behind a pooler that loses the settings of a session', () => {
    let pool: DataSource;
    beforeAll(async () => {
      pool = await connect();
      parts.defer(() => pool.destroy());
    });

    it('has sessions at the isolation level of the database', async () => {
      expect(await rows(pool, 'SHOW transaction_isolation')).toEqual([
        { transaction_isolation: 'serializable' },
      ]);
    });

    it('repeats each statement and each transaction that rolled back', async () => {
      await pool.query('CREATE TABLE counters (name text PRIMARY KEY, n integer NOT NULL)');
      await pool.query("INSERT INTO counters VALUES ('statement', 0), ('transaction', 0)");
      const alone = () =>
        sql(pool.manager)`UPDATE counters SET n = n + 1 WHERE name = ${'statement'} RETURNING n`;
      const within = () =>
        withTransactionRetry(pool, async (tx) => {
          const [row] = await sql<{ n: number }>(tx)`
            SELECT n FROM counters WHERE name = ${'transaction'}`;
          await sql(tx)`UPDATE counters SET n = ${(row?.n ?? 0) + 1} WHERE name = ${'transaction'}`;
        });
      await Promise.all(twenty.flatMap(() => [alone(), within()]));
      expect(await rows(pool, 'SELECT name, n FROM counters ORDER BY name')).toEqual([
        { name: 'statement', n: AT_ONCE },
        { name: 'transaction', n: AT_ONCE },
      ]);
    });

    it('admits one burst of a limit, and no more', async () => {
      const buckets = [0, 1].map(
        () => new DatabaseBuckets(pool.manager, new RateLimitsRepository(), new RecordingLog()),
      );
      const { burst, interval } = TIERS.authentication;
      const begun = performance.now();
      const asked = twenty.flatMap(() =>
        buckets.map((replica) =>
          replica.increment('racer', burst * interval, burst, 0, 'authentication'),
        ),
      );
      const admitted = (await Promise.all(asked)).filter(({ isBlocked }) => !isBlocked).length;
      const refilled = Math.ceil((performance.now() - begun) / interval);
      expect(admitted).toBeGreaterThanOrEqual(burst);
      expect(admitted).toBeLessThanOrEqual(burst + refilled);
      expect(await count(pool, "rate_limits WHERE bucket LIKE '%racer%'")).toBe(1);
    });
  });
});
