import type { TestApp } from './app.js';
import type { Answer, Client } from './client.js';
import { orgApi } from './org-api.js';
import { rows } from './rows.js';
import type { ScimOrganization } from './scim-organization.js';

/** Calls the API of targets (applications, roles of AWS, groups of hosts, GitHub) as an admin. */
export function accessApi(
  admin: Client,
  method: string,
  path: string,
  body?: unknown,
  ifMatch?: string,
): Promise<Answer> {
  const headers: Record<string, string> = ifMatch === undefined ? {} : { 'if-match': ifMatch };
  return orgApi(admin, method, `/access${path}`, body, headers);
}

/**
 * The body of a request that sets the rule of a target: which users it admits, and on what
 * conditions.
 */
export interface RuleBody {
  readonly access?: 'everyone' | 'assigned';
  readonly conditions?: object;
  readonly assignments?: readonly object[];
}

/** Reads the version of a target, and replaces the target's rule by a request with that version. */
export async function putRule(
  admin: Client,
  path: string,
  { access = 'assigned', conditions = {}, assignments = [] }: RuleBody,
): Promise<Answer> {
  const read = await accessApi(admin, 'GET', path);
  const tag = read.headers.get('etag') ?? undefined;
  return accessApi(admin, 'PUT', path, { access, conditions, assignments }, tag);
}

/** Creates a target for a role of AWS, and returns its path in the API. */
export async function addRole(admin: Client, roleArn: string, name = 'deploy'): Promise<string> {
  const made = await accessApi(admin, 'POST', '/aws_role', { role_arn: roleArn, name });
  if (made.status !== 201) throw new Error(`no role: ${made.text}`);
  return `/aws_role/${made.json.id}`;
}

/** Creates a target for a group of hosts, and returns its path in the API. */
export async function addHostGroup(admin: Client, name: string): Promise<string> {
  const body = { name, hosts: [`*.${name}.example.com`], logins: ['deploy'] };
  const made = await accessApi(admin, 'POST', '/host_group', body);
  if (made.status !== 201) throw new Error(`no group of hosts: ${made.text}`);
  return `/host_group/${made.json.id}`;
}

/** Makes a SCIM group with members, and returns its id. */
export async function addGroup(
  { scim }: ScimOrganization,
  displayName: string,
  members: readonly string[],
): Promise<string> {
  const body = { displayName, members: members.map((value) => ({ value })) };
  const made = await scim('POST', '/Groups', body);
  if (made.status !== 201) throw new Error(`no group: ${made.text}`);
  return made.json.id as string;
}

/** Links a GitHub installation to the organization of a user. */
export async function linkInstallation(app: TestApp, email: string, id: number, owner: string) {
  await rows(
    app.dataSource,
    `INSERT INTO github_installations (id, org_id, account_id, owner, repository_selection, changed_at, linked_by)
     SELECT $1, org_id, $1, $2, 'all', now(), id FROM users WHERE email = $3`,
    [id, owner, email],
  );
}

/**
 * Sets the last login of a user to some seconds ago. A target that demands a recent touch of the
 * key then refuses the user.
 */
export async function touchAgo(app: TestApp, email: string, seconds: number): Promise<void> {
  await rows(
    app.dataSource,
    `UPDATE sessions SET auth_time = now() - make_interval(secs => $2)
     WHERE user_id = (SELECT id FROM users WHERE email = $1)`,
    [email, seconds],
  );
}
