import { randomUUID } from 'node:crypto';
import type { DataSource } from 'typeorm';
import { rows } from './rows.js';

/** A role of AWS or a group of hosts to insert as a target of an organization. */
export type NewTarget =
  | { readonly hosts: readonly string[]; readonly logins: readonly string[]; readonly name: string }
  | { readonly roleArn: string; readonly region?: string; readonly name: string };

/**
 * Inserts a target into a person's organization. All people of the organization may use it.
 * @returns the target's id
 */
export async function addTarget(
  dataSource: DataSource,
  email: string,
  target: NewTarget,
): Promise<string> {
  const id = randomUUID();
  const isRole = 'roleArn' in target;
  await rows(
    dataSource,
    `INSERT INTO access_targets (id, org_id, kind, name, role_arn, region, hosts, logins)
     SELECT $1, org_id, $3, $4, $5, $6, $7, $8 FROM users WHERE email = $2`,
    [
      id,
      email,
      isRole ? 'aws_role' : 'host_group',
      target.name,
      isRole ? target.roleArn : null,
      isRole ? (target.region ?? null) : null,
      isRole ? [] : target.hosts,
      isRole ? [] : target.logins,
    ],
  );
  return id;
}

/**
 * Links an installation of the GitHub App to a person's organization, and inserts a target for it.
 * @returns the target's id
 */
export async function addInstallation(
  dataSource: DataSource,
  email: string,
  owner: string,
): Promise<string> {
  await rows(
    dataSource,
    `INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, changed_at, linked_by)
     SELECT n.id, u.org_id, n.id, $2, 'all', now(), u.id
     FROM users u CROSS JOIN (SELECT floor(random() * 1e12)::bigint AS id) n WHERE u.email = $1`,
    [email, owner],
  );
  const [target] = await rows<{ id: string }>(
    dataSource,
    `SELECT t.id FROM access_targets t JOIN github_installations n ON n.id = t.installation_id WHERE n.owner = $1`,
    [owner],
  );
  return target?.id ?? '';
}

/** Lets only assigned people use a target, and assigns people and groups to it. */
export async function assignTo(
  dataSource: DataSource,
  targetId: string,
  whom: { readonly users?: readonly string[]; readonly groups?: readonly string[] } = {},
): Promise<void> {
  await rows(dataSource, `UPDATE access_targets SET access = 'assigned' WHERE id = $1`, [targetId]);
  for (const user of whom.users ?? []) {
    await rows(dataSource, 'INSERT INTO access_assignments (target_id, user_id) VALUES ($1, $2)', [
      targetId,
      user,
    ]);
  }
  for (const group of whom.groups ?? []) {
    await rows(dataSource, 'INSERT INTO access_assignments (target_id, group_id) VALUES ($1, $2)', [
      targetId,
      group,
    ]);
  }
}
