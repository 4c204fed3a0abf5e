import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import type { AuditFilter, AuditRange } from '#domain/audit/audit-filter.js';
import { searchStatement } from '#domain/audit/audit-search.repository.js';
import { openPool } from '#platform/database/connection.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { RecordingLog } from '../../support/recording-log.js';
import { literal } from '../../support/sql-literal.js';

const ORG = randomUUID();
const NOBODY = randomUUID();

/** The events of each class. Within a class, only their requests and times differ. */
const EVENTS = 4_000;

/** A page of events, and one more that tells whether another page follows. */
const PAGE = 101;

/** The most events that a search may read in vain. */
const FEW = 500;

/** A step of a plan that PostgreSQL has executed. */
interface Step {
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Actual Loops': number;
  readonly Plans?: readonly Step[];
}

const SEARCHES: Readonly<Record<string, AuditFilter>> = {
  'a type': { types: ['admin_demote'] },
  'an address': { people: [{ ids: [], addresses: ['other@plans.example'] }] },
  'a user': { people: [{ ids: [NOBODY], addresses: [] }] },
  'an application': { client: 'other-client' },
  'a key': { keys: { id: 'other-key', aaguids: [] } },
  'a model': { keys: { id: undefined, aaguids: ['other-model'] } },
  'a request': { requestId: 'other-request' },
};

describe('a search for what no event has, in a log whose events are all alike', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 3);
    await dataSource.query(
      `INSERT INTO audit_events (id, type, class, subject_id, subject_email, org_id, request_id, client_name, details, created_at)
       SELECT gen_random_uuid(), k.type, k.class, $1, 'one@plans.example', $1, n::text, 'One', k.details::jsonb,
              now() - make_interval(secs => n)
       FROM generate_series(1, $2::int) n, (VALUES
         ('scim_operation', 'admin', '{"email": "one@plans.example", "key_id": "one"}'),
         ('login_success', 'auth', '{"email": "one@plans.example", "key_id": "one", "aaguid": "one"}'),
         ('oauth_token_issued', 'oauth', '{"client_id": "one", "application_id": "one"}')) AS k (type, class, details)`,
      [ORG, EVENTS],
    );
    await dataSource.query('ANALYZE audit_events');
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  /** Returns the number of events that a search has read and did not return. */
  async function readInVain(filter: AuditFilter, range: AuditRange, mode: string) {
    const { text, values } = searchStatement('e.id', ORG, filter, range, true);
    const name = `p${randomUUID().replaceAll('-', '')}`;
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction();
    try {
      await runner.query(`SET LOCAL plan_cache_mode = force_${mode}_plan`);
      await runner.query(`PREPARE ${name} AS ${text}`);
      const [row] = (await runner.query(
        `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE ${name} (${values.map(literal).join(', ')})`,
      )) as { 'QUERY PLAN': { Plan: Step }[] }[];
      return removedIn(row?.['QUERY PLAN'][0]?.Plan);
    } finally {
      await runner.rollbackTransaction();
      await runner.release();
    }
  }

  it.each(Object.keys(SEARCHES))('by %s reads few events in vain', async (what) => {
    const filter = SEARCHES[what] ?? {};
    const first = { limit: PAGE, after: undefined };
    const next = { limit: PAGE, after: { at: new Date().toISOString(), id: NOBODY } };
    for (const mode of ['custom', 'generic']) {
      expect(await readInVain(filter, first, mode)).toBeLessThan(FEW);
      expect(await readInVain(filter, next, mode)).toBeLessThan(FEW);
    }
  });
});

/** Returns the rows that the filters of a step, and of the steps below it, have removed. */
function removedIn(step: Step | undefined): number {
  if (!step) throw new Error('PostgreSQL explains nothing');
  const own = (step['Rows Removed by Filter'] ?? 0) * step['Actual Loops'];
  return (step.Plans ?? []).reduce((sum, each) => sum + removedIn(each), own);
}
