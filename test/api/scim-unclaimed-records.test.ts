import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { lockWaiters, untilWaiting } from '../support/lock-waiters.js';
import { rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
const AT = 'unclaimed.example';

describe('a POST of a user who concerns no other user', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let orgId: string;
  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, AT);
    const [admin] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      [`admin@${AT}`],
    );
    orgId = admin?.org_id ?? '';
  });
  afterAll(() => app.close());

  const post = (body: object) => organization.scim('POST', '/Users', body);

  /**
   * Sends a POST of a user that waits for the directory lock of another transaction. That
   * transaction then runs a statement and commits. Returns the response.
   */
  async function postDuring(body: object, act: string, values: readonly unknown[]) {
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT FROM directory_locks WHERE org_id = $1 FOR UPDATE', [orgId]);
    const waiting = post(body);
    await untilWaiting(app.dataSource, 1);
    await holder.query(act, [...values]);
    await holder.commitTransaction();
    await holder.release();
    return waiting;
  }

  it('answers what a GET then answers, with every attribute, and the name of a manager', async () => {
    const manager = await post({ userName: `manager@${AT}`, displayName: 'Manager' });
    const made = await post({
      userName: `Employee@${AT}`,
      externalId: 'e-1',
      active: false,
      displayName: 'Employee',
      name: { givenName: 'Em', familyName: 'Ployee' },
      emails: [
        { value: `employee@${AT}`, type: 'work', primary: true },
        { value: `home@${AT}`, type: 'home' },
      ],
      [ENTERPRISE]: { manager: { value: manager.json.id }, department: 'Research' },
    });
    expect(made.json[ENTERPRISE].manager.displayName).toBe('Manager');
    for (const { json, status, headers } of [manager, made]) {
      const found = await organization.scim('GET', `/Users/${json.id}`);
      expect([status, found.status]).toEqual([201, 200]);
      expect(json).toEqual(found.json);
      expect(headers.get('etag')).toBe(found.headers.get('etag'));
    }
  });

  it('keeps the addresses that the database itself finds in the row', async () => {
    for (const [n, emails] of [
      [],
      [{ value: `first@${AT}`, type: 'home' }],
      [
        { value: `one@${AT}`, type: 'work' },
        { value: `two@${AT}`, primary: true },
      ],
      [{ value: `three@${AT}`, type: 'work' }],
    ].entries()) {
      for (const userName of [`no-address-${n}`, `address-${n}@${AT}`]) {
        const { json } = await post({
          userName,
          emails: emails.map((email) => ({ ...email, value: `${userName[0]}${n}${email.value}` })),
        });
        const kept = await rows(
          app.dataSource,
          'SELECT address, rank FROM record_addresses WHERE user_id = $1 ORDER BY 1',
          [json.id],
        );
        const found = await rows(
          app.dataSource,
          `SELECT a.address, a.rank FROM users u, addresses_of_record(u.user_name, u.attributes) a
           WHERE u.id = $1 ORDER BY 1`,
          [json.id],
        );
        expect(kept).toEqual(found);
      }
    }
  });

  it('reads after the lock: it takes over a member who was founded while it waited', async () => {
    const [id, email] = [randomUUID(), `founded@${AT}`];
    const answer = await postDuring(
      { userName: email },
      'INSERT INTO users (id, org_id, email) VALUES ($1, $2, $3)',
      [id, orgId, email],
    );
    expect([answer.status, answer.json.id]).toEqual([201, id]);
    expect(await lockWaiters(app.dataSource)).toBe(0);
  });

  it('reads after the lock: it lifts a tombstone that came while it waited', async () => {
    const email = `barred@${AT}`;
    const answer = await postDuring(
      { userName: email },
      'INSERT INTO scim_tombstones (org_id, email) VALUES ($1, $2)',
      [orgId, email],
    );
    expect(answer.status).toBe(201);
    const [tombstone] = await rows(
      app.dataSource,
      'SELECT lifted_for FROM scim_tombstones WHERE email = $1',
      [email],
    );
    expect(tombstone).toEqual({ lifted_for: answer.json.id });
  });

  it('reads after the lock: a userName that another record took while it waited is a conflict', async () => {
    const answer = await postDuring(
      { userName: 'Taken' },
      `INSERT INTO users (id, org_id, user_name, scim_managed) VALUES ($1, $2, 'taken', true)`,
      [randomUUID(), orgId],
    );
    expect([answer.status, answer.json.scimType]).toEqual([409, 'uniqueness']);
  });

  it('writes the audit row in its transaction, with the address of the user', async () => {
    const { json } = await post({ userName: `audited@${AT}` });
    const [written] = await rows(
      app.dataSource,
      `SELECT e.type, e.subject_email, e.details ->> 'operation' AS operation, e.xmin = u.xmin AS together
       FROM audit_events e JOIN users u ON u.id = e.subject_id WHERE e.subject_id = $1`,
      [json.id],
    );
    expect(written).toEqual({
      type: 'scim_operation',
      subject_email: `audited@${AT}`,
      operation: 'create',
      together: true,
    });
  });
});
