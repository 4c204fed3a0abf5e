import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AuditType } from '#domain/audit/audit-event.js';
import { AuditLog, recordAudit } from '#domain/audit/audit.repository.js';
import { afterCommit } from '#platform/database/statements/after-commit.js';
import { onRecorded } from '#platform/database/statements/recorded-ids.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { rows } from '../support/rows.js';
import { addTenant } from '../support/scim.js';
import { PUBLIC_KEY } from '../support/ssh-issuance.js';

describe('what a process remembers of its commits', () => {
  let app: TestApp;
  let user: EnrolledUser;
  let noted: string[] = [];

  beforeAll(async () => {
    app = await startTestApp({ environment: { SVC_SSH_PRINCIPALS: 'email' } });
    user = await app.enrolled('alice@example.com');
    onRecorded(app.dataSource, (ids) => noted.push(...ids));
  });
  afterAll(() => app.close());
  beforeEach(() => {
    noted = [];
  });

  it('the id of each audit row of issued credentials, of logins and of an identity provider', async () => {
    const before = await events(app.dataSource);
    const { client, key } = user;
    const asked = Array.from({ length: 20 }, () =>
      client.post('/v1/credentials/ssh', { public_key: PUBLIC_KEY }, { address: newAddress() }),
    );
    const answers = await Promise.all(asked);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await app.client().logIn(key);
    const tenant = await addTenant(app);
    const made = await tenant.send('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: `bob@${tenant.domain}`,
    });
    const { id } = made.json as { id: string };
    const group = await tenant.send('POST', '/Groups', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
      displayName: 'Team',
      members: [{ value: id }],
    });
    const { id: groupId } = group.json as { id: string };
    await tenant.send('PUT', `/Groups/${groupId}`, {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
      displayName: 'Crew',
    });
    await tenant.send('POST', '/Users', {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: `bob@${tenant.domain}`,
    });
    await tenant.send('DELETE', `/Groups/${groupId}`);
    await tenant.send('DELETE', `/Users/${id}`);
    const found = (await events(app.dataSource)).filter((event) => !before.includes(event));
    expect(found.length).toBeGreaterThan(26);
    expect(noted.toSorted()).toEqual(found.toSorted());
  });

  it('nothing before the commit, and nothing that was rolled back with its savepoint', async () => {
    const [outer, lost, kept] = ['oauth_access_ended', 'logout', 'session_ended'] as const;
    await app.dataSource.transaction(async (tx) => {
      await record(tx, outer);
      await tx
        .transaction(async (inner) => {
          await record(inner, lost);
          throw new Error('the savepoint is rolled back');
        })
        .catch(() => undefined);
      await tx.transaction((inner) => record(inner, kept));
      expect(noted).toEqual([]);
    });
    expect(await typesOf(app.dataSource, noted)).toEqual([outer, kept]);
  });

  it('nothing of a transaction that goes on after a failed statement, since its COMMIT rolls back', async () => {
    let acts = 0;
    await app.dataSource.transaction(async (tx) => {
      await record(tx, 'logout');
      afterCommit(tx, () => (acts += 1));
      await sql(tx)`SELECT 1 / 0 AS nothing`.catch(() => undefined);
    });
    expect([noted, acts]).toEqual([[], 0]);
  });

  it('nothing of an event that was not due', async () => {
    const event = { ...eventOf('admin_access_refused'), subjectId: randomUUID() };
    const log = new AuditLog();
    for (let turn = 0; turn < 2; turn += 1) {
      await log.record(app.dataSource.manager, event, { atMostEvery: 60 });
    }
    expect(noted).toHaveLength(1);
  });

  it('a statement that does not tell the ids of its audit rows is refused', async () => {
    const event = { ...eventOf('logout') };
    await expect(
      sql(app.dataSource.manager)`
        WITH audited AS (${recordAudit(event)}) SELECT ${fragment`1 AS one`}`,
    ).rejects.toThrow('recorded');
  });
});

function eventOf(type: AuditType) {
  const origin = { requestId: 'r', ip: '192.0.2.7', userAgent: 'test' };
  return { type, actorId: null, subjectId: null, orgId: null, origin };
}

function record(tx: EntityManager, type: AuditType): Promise<void> {
  return new AuditLog().record(tx, eventOf(type));
}

async function events(dataSource: DataSource): Promise<string[]> {
  const found = await rows<{ id: string }>(dataSource, 'SELECT id FROM audit_events');
  return found.map(({ id }) => id);
}

async function typesOf(dataSource: DataSource, ids: readonly string[]): Promise<string[]> {
  const found = await rows<{ type: string }>(
    dataSource,
    'SELECT type FROM audit_events WHERE id = ANY ($1::uuid[]) ORDER BY id',
    [ids],
  );
  return found.map(({ type }) => type);
}
