import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { TestApp } from './app.js';
import type { Answer } from './client.js';
import { rows } from './rows.js';
import type { ScimTenant } from './scim.js';

export const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
export const CORE_USER = 'urn:ietf:params:scim:schemas:core:2.0:User';

/** Returns the body of a SCIM PATCH request with these operations (RFC 7644 §3.5.2). */
export function patchOf(...operations: readonly object[]): object {
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: operations,
  };
}

/** Returns a path with a query of the given fields. */
export function withQuery(path: string, fields: Readonly<Record<string, string | number>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) query.set(name, String(value));
  return `${path}?${query.toString()}`;
}

/** Creates a resource by SCIM, and returns it. Expects status 201. */
export async function made(
  tenant: ScimTenant,
  type: 'Users' | 'Groups',
  body: object,
): Promise<Answer['json']> {
  const answer = await tenant.send('POST', `/${type}`, body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.json;
}

/** Reads a resource by SCIM, and returns it. */
export async function shown(
  tenant: ScimTenant,
  type: 'Users' | 'Groups',
  id: string,
): Promise<Answer['json']> {
  const answer = await tenant.send('GET', `/${type}/${id}`);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json;
}

/** Returns the resources that a SCIM filter finds. */
export async function found(
  tenant: ScimTenant,
  type: 'Users' | 'Groups',
  filter: string,
): Promise<Answer['json'][]> {
  const answer = await tenant.send('GET', withQuery(`/${type}`, { filter }));
  expect([filter, answer.status, answer.text]).toEqual([filter, 200, expect.any(String)]);
  return answer.json.Resources;
}

/** Returns the sorted ids of the members of a group. */
export function memberIdsOf(group: Answer['json']): string[] {
  return ((group.members ?? []) as { value: string }[]).map(({ value }) => value).toSorted();
}

/** Expects a SCIM error (RFC 7644 §3.12) that has no other members. */
export function expectScimError(answer: Answer, status: number, scimType?: string): void {
  const { json, text } = answer;
  expect([answer.status, json?.scimType, text]).toEqual([status, scimType, expect.any(String)]);
  expect(answer.headers.get('content-type')).toMatch(/^application\/scim\+json/);
  expect(json).toEqual({
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(status),
    detail: expect.stringMatching(/\S/),
    ...(scimType === undefined ? {} : { scimType }),
  });
}

/**
 * The largest number of users in one INSERT. With more, it could exceed the time limit of a
 * statement on a busy machine.
 */
const INSERTED_AT_ONCE = 2_500;

/**
 * Inserts users of an organization by SQL, because requests would take too long for many users.
 * Returns their ids, sorted.
 */
export async function insertUsers(
  app: TestApp,
  { orgId, domain }: ScimTenant,
  howMany: number,
): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < howMany) {
    const inserted = await rows<{ id: string }>(
      app.dataSource,
      `INSERT INTO users (id, org_id, email, user_name, scim_managed)
       SELECT gen_random_uuid(), $1, address, address, true
       FROM (SELECT substr(gen_random_uuid()::text, 1, 18) || '-' || n || '@' || $2::text AS address
             FROM generate_series($3::int + 1, $4::int) n) named
       RETURNING id`,
      [orgId, domain, ids.length, Math.min(howMany, ids.length + INSERTED_AT_ONCE)],
    );
    ids.push(...inserted.map(({ id }) => id));
  }
  return ids.toSorted();
}

/** Inserts members of a group by SQL. */
export async function insertMembers(
  app: TestApp,
  groupId: string,
  userIds: readonly string[],
): Promise<void> {
  await rows(
    app.dataSource,
    'INSERT INTO group_members (group_id, user_id) SELECT $1, unnest($2::uuid[])',
    [groupId, userIds],
  );
}

/**
 * Runs a function while the table `group_members` is locked. A statement of the function that reads
 * the table waits until the test fails. So a test can show that no statement reads it.
 */
export async function withMembersLocked<T>(app: TestApp, act: () => Promise<T>): Promise<T> {
  const runner = app.dataSource.createQueryRunner();
  await runner.startTransaction();
  await runner.query('LOCK TABLE group_members IN ACCESS EXCLUSIVE MODE');
  try {
    return await act();
  } finally {
    await runner.rollbackTransaction();
    await runner.release();
  }
}

/**
 * Returns functions that create and change resources of one organization. Each name that they give
 * is unique.
 */
export function actsOf(tenant: () => ScimTenant) {
  const address = () => `${randomUUID().slice(0, 13)}@${tenant().domain}`;
  return {
    address,
    newUser: (more: object = {}) => made(tenant(), 'Users', { userName: address(), ...more }),
    newGroup: (...members: readonly string[]) =>
      made(tenant(), 'Groups', {
        displayName: randomUUID(),
        members: members.map((value) => ({ value })),
      }),
    patch: (path: string, ...operations: readonly object[]) =>
      tenant().send('PATCH', path, patchOf(...operations)),
  };
}
