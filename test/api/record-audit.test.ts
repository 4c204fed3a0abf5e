import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AUDIT_CLASS, AUDIT_TYPES } from '#domain/audit/audit-event.js';
import { AuditLog, RECORDED, recordAudit } from '#domain/audit/audit.repository.js';
import { openPool } from '#platform/database/connection.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { RecordingLog } from '../support/recording-log.js';
import { rows } from '../support/rows.js';

const ORIGIN = { requestId: 'r', ip: '192.0.2.7', userAgent: 'test' };

describe('the statement that writes the audit log', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  const userId = randomUUID();

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await openPool({ connectionString: database.url }, new RecordingLog(), 2);
    await dataSource.query('INSERT INTO users (id, email) VALUES ($1, $2)', [
      userId,
      'ada@example.com',
    ]);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const recorded = (requestId: string) =>
    rows(
      dataSource,
      `SELECT type, class, actor_id, subject_id, actor_email, subject_email, client_name, host(ip) AS ip, user_agent, details
       FROM audit_events WHERE request_id = $1 ORDER BY type`,
      [requestId],
    );

  it('sets the class of every type, given as a value or as a column', async () => {
    for (const type of AUDIT_TYPES) {
      const event = { type, actorId: null, subjectId: null, orgId: null };
      await new AuditLog().record(dataSource.manager, {
        ...event,
        origin: { ...ORIGIN, requestId: 'one' },
      });
    }
    await sql(dataSource.manager)`
      WITH audited AS (${recordAudit(
        {
          id: fragment`e.id`,
          type: fragment`e.type`,
          origin: fragment`'many', '192.0.2.7'::inet, 'test'`,
        },
        fragment`FROM unnest(${AUDIT_TYPES.map(() => randomUUID())}::uuid[], ${AUDIT_TYPES}::text[]) AS e (id, type)`,
      )})
      SELECT ${RECORDED}`;
    const expected = AUDIT_TYPES.toSorted().map((type) => ({ type, class: AUDIT_CLASS[type] }));
    expect(await recorded('one')).toMatchObject(expected);
    expect(await recorded('many')).toEqual(await recorded('one'));
  });

  it('keeps given names, and looks up missing ones', async () => {
    const event = {
      type: 'oauth_token_issued',
      actorId: userId,
      subjectId: userId,
      details: { client_id: 'svc-cli' },
    } as const;
    const about = (requestId: string) => ({ ...event, origin: { ...ORIGIN, requestId } });
    await sql(dataSource.manager)`${recordAudit(about('looked-up'))}`;
    await sql(dataSource.manager)`${recordAudit({
      ...about('known'),
      actorEmail: fragment`'a@example.com'`,
      subjectEmail: fragment`'s@example.com'`,
      clientName: fragment`'a client'`,
    })}`;
    expect(await recorded('looked-up')).toMatchObject([
      {
        actor_email: 'ada@example.com',
        subject_email: 'ada@example.com',
        client_name: 'svc command line',
        ip: '192.0.2.7',
        user_agent: 'test',
      },
    ]);
    expect(await recorded('known')).toMatchObject([
      { actor_email: 'a@example.com', subject_email: 's@example.com', client_name: 'a client' },
    ]);
  });
});
