import { AccessEndings } from '../../src/domain/access-revocation/ended-reach/access-endings.service.js';
import type { TestApp } from './app.js';
import { count, rows } from './rows.js';
import type { ScimOrganization } from './scim-organization.js';

/**
 * The rule of an application. By default it admits everyone of the organization without a
 * condition.
 */
export interface Rule {
  readonly access?: 'everyone' | 'assigned';
  readonly touchWithinSeconds?: number;
  readonly models?: 'fips-only';
  readonly userVerification?: 'required';
}

/** Sets the rule of an application or cluster. */
export async function setRule(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  clientId: string,
  { access = 'everyone', touchWithinSeconds, models, userVerification }: Rule,
): Promise<void> {
  await dataSource.query(
    `UPDATE access_targets SET access = $2, touch_within_seconds = $3, models = $4, user_verification = $5
     WHERE client_id = $1`,
    [clientId, access, touchWithinSeconds ?? null, models ?? null, userVerification ?? null],
  );
}

/** Assigns a user (by e-mail address) or a group (by id) to an application. */
export async function assign(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  clientId: string,
  to: { readonly email: string } | { readonly groupId: string },
): Promise<void> {
  await dataSource.query(
    `INSERT INTO access_assignments (target_id, user_id, group_id)
     SELECT t.id, (SELECT u.id FROM users u WHERE u.email = $2), $3 FROM access_targets t WHERE t.client_id = $1`,
    [clientId, 'email' in to ? to.email : null, 'groupId' in to ? to.groupId : null],
  );
}

/** Removes all assignments of an application. */
export async function unassign(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  clientId: string,
): Promise<void> {
  await dataSource.query(
    'DELETE FROM access_assignments x USING access_targets t WHERE t.id = x.target_id AND t.client_id = $1',
    [clientId],
  );
}

/** Runs the worker that ends access to targets until its queue is empty. */
export async function drain({ nest }: Pick<TestApp, 'nest'>): Promise<void> {
  await nest.get(AccessEndings, { strict: false }).drain();
}

/**
 * A SCIM group that a test created. Its functions send a request and resolve with the HTTP status.
 */
export interface TestGroup {
  readonly id: string;
  /** Adds a person to the group by SCIM, or removes a person from it. */
  readonly patch: (op: 'add' | 'remove', userId: string) => Promise<number>;
  readonly remove: () => Promise<number>;
}

/** Creates a person by SCIM. Returns the id. */
export async function provision({ scim }: ScimOrganization, email: string): Promise<string> {
  const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
  const created = await scim('POST', '/Users', { schemas, userName: email });
  if (created.status !== 201) throw new Error(`the person was not created: ${created.text}`);
  return created.json.id as string;
}

/** Creates a group with members by SCIM. */
export async function newGroup(
  { scim }: ScimOrganization,
  displayName: string,
  members: readonly string[],
): Promise<TestGroup> {
  const created = await scim('POST', '/Groups', {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:Group'],
    displayName,
    members: members.map((value) => ({ value })),
  });
  if (created.status !== 201) throw new Error(`the group was not created: ${created.text}`);
  const id = created.json.id as string;
  return {
    id,
    patch: async (op, userId) => {
      const operation =
        op === 'add'
          ? { op, path: 'members', value: [{ value: userId }] }
          : { op, path: `members[value eq "${userId}"]` };
      const schemas = ['urn:ietf:params:scim:api:messages:2.0:PatchOp'];
      const answer = await scim('PATCH', `/Groups/${id}`, { schemas, Operations: [operation] });
      return answer.status;
    },
    remove: async () => (await scim('DELETE', `/Groups/${id}`)).status,
  };
}

/** Moves every touch of a person's key back by a number of seconds, as if that time had passed. */
export async function ageTouches(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  email: string,
  seconds: number,
): Promise<void> {
  await dataSource.query(
    `UPDATE sessions s SET auth_time = auth_time - make_interval(secs => $2), touches = coalesce((
       SELECT jsonb_object_agg(x.key, x.value || jsonb_build_object(
         'at', (x.value ->> 'at')::float8 - $2, 'uv', (x.value ->> 'uv')::float8 - $2))
       FROM jsonb_each(s.touches) x), '{}')
     FROM users u WHERE u.id = s.user_id AND u.email = $1`,
    [email, seconds],
  );
}

/**
 * Returns the details of the newest audit event that says that a target refused a person. Returns
 * undefined if no such event exists.
 */
export async function lastRefusal(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  email: string,
): Promise<Record<string, unknown> | undefined> {
  const [row] = await rows<{ details: Record<string, unknown> }>(
    dataSource,
    `SELECT e.details FROM audit_events e JOIN users u ON u.id = e.subject_id
     WHERE u.email = $1 AND e.type = 'access_refused' ORDER BY e.id DESC LIMIT 1`,
    [email],
  );
  return row?.details;
}

/** Counts the audit events that say that a target refused a person. */
export function refusalsOf(
  { dataSource }: Pick<TestApp, 'dataSource'>,
  email: string,
): Promise<number> {
  return count(
    dataSource,
    "audit_events e JOIN users u ON u.id = e.subject_id WHERE u.email = $1 AND e.type = 'access_refused'",
    [email],
  );
}
