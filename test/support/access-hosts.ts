import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { rows } from './rows.js';

/** A group of hosts that a test inserts. If `logins` is left out, people log in as `deploy`. */
export interface HostGroup {
  readonly orgId: string;
  readonly name: string;
  readonly hosts?: readonly string[];
  readonly logins?: readonly string[];
  readonly access?: 'everyone' | 'assigned';
  readonly touchWithinSeconds?: number;
  readonly models?: 'fips-only';
  readonly userVerification?: 'required';
}

/** Inserts a group of hosts, and returns the id of its target. */
export async function makeHostGroup(database: DataSource, group: HostGroup): Promise<string> {
  const { orgId, name, hosts = [`*.${name}.example`], logins = ['deploy'] } = group;
  const [row] = await rows<{ id: string }>(
    database,
    `INSERT INTO access_targets (org_id, kind, name, hosts, logins, access, touch_within_seconds, models, user_verification)
     VALUES ($1, 'host_group', $2, $3, $4, $5, $6, $7, $8) RETURNING id`,
    [
      orgId,
      name,
      hosts,
      logins,
      group.access ?? 'everyone',
      group.touchWithinSeconds ?? null,
      group.models ?? null,
      group.userVerification ?? null,
    ],
  );
  return row?.id ?? '';
}

/** Assigns a person, or a SCIM group, to a target, so that the target admits them. */
export async function assign(
  database: DataSource,
  targetId: string,
  { userId = null, groupId = null }: { userId?: string | null; groupId?: string | null },
): Promise<void> {
  await rows(
    database,
    'INSERT INTO access_assignments (target_id, user_id, group_id) VALUES ($1, $2, $3)',
    [targetId, userId, groupId],
  );
}

/** Inserts a SCIM group with members, and returns its id. */
export async function makeScimGroup(
  database: DataSource,
  orgId: string,
  members: readonly string[],
): Promise<string> {
  const id = randomUUID();
  await rows(database, 'INSERT INTO groups (id, org_id, display_name) VALUES ($1, $2, $3)', [
    id,
    orgId,
    `group-${id}`,
  ]);
  await rows(
    database,
    'INSERT INTO group_members (group_id, user_id) SELECT $1, unnest($2::uuid[])',
    [id, members],
  );
  return id;
}

/**
 * Replaces the touches of security keys in a session by a single touch, a number of seconds ago.
 */
export async function touchAgo(
  database: DataSource,
  sessionId: string,
  seconds: number,
  { uv = false, fips = false } = {},
): Promise<void> {
  await rows(
    database,
    `UPDATE sessions s SET touches = jsonb_build_object('key', jsonb_build_object('at', x.at, 'uv', CASE WHEN $3 THEN x.at END, 'fips', $4::boolean))
     FROM (SELECT extract(epoch FROM now()) - $2::float8 AS at) x WHERE s.id = $1`,
    [sessionId, seconds, uv, fips],
  );
}
