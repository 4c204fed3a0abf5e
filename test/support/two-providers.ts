import { newAddress, type Answer, type Client } from './client.js';
import type { EnrolledUser, TestApp } from './app.js';
import { orgApi } from './org-api.js';
import { rows } from './rows.js';

/** An identity provider in the answer of `GET /api/v1/org/providers`. */
export interface ListedProviderJson {
  readonly id: string;
  readonly provider: string | null;
  readonly issuer: string;
  readonly tenant: string;
  readonly founding: boolean;
  readonly added_by: string | null;
  readonly users: number;
}

/** An organization whose first user signed in through the provider `demo`. */
export interface FoundedOrganization {
  readonly domain: string;
  readonly founder: EnrolledUser;
  /** Returns an e-mail address in the domain of the organization. */
  readonly address: (name: string) => string;
}

let organizations = 0;

/**
 * Creates an organization. Its first user signs in through the provider `demo` and becomes its
 * admin.
 */
export async function founded(app: TestApp): Promise<FoundedOrganization> {
  organizations += 1;
  const domain = `providers-${organizations}.example`;
  const founder = await app.enrolled(`ada@${domain}`);
  return { domain, founder, address: (name) => `${name}@${domain}` };
}

/** Signs a user in through a provider, enrolls a key and logs in with it. */
export async function enrolledThrough(
  app: TestApp,
  email: string,
  provider: string,
): Promise<EnrolledUser> {
  const client = app.client();
  const key = app.newKey();
  await client.signIn(email, '/', provider);
  const answer = await client.enroll(key);
  if (answer.status !== 200) throw new Error(`enrollment failed: ${answer.text}`);
  return { client, key };
}

/** Lists the identity providers of an admin's organization. */
export async function providersOf(admin: Client): Promise<ListedProviderJson[]> {
  return (await orgApi(admin, 'GET', '/providers')).json.providers as ListedProviderJson[];
}

/** Makes an organization accept an identity provider, or only a `tenant` of the provider. */
export function allow(admin: Client, provider: string, tenant?: string): Promise<Answer> {
  const body = tenant === undefined ? { provider } : { provider, tenant };
  return orgApi(admin, 'POST', '/providers', body);
}

/** Makes an organization stop accepting the identity provider with a slug. */
export async function withdraw(admin: Client, provider: string): Promise<Answer> {
  const found = (await providersOf(admin)).find((one) => one.provider === provider);
  return admin.send('DELETE', `/api/v1/org/providers/${found?.id ?? 'none'}`, {
    address: newAddress(),
  });
}

/** Returns the audit events of a type in the organization of a domain, the oldest first. */
export function eventsOf(app: TestApp, domain: string, type: string) {
  return rows<{ actor: string; subject: string | null; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT a.email AS actor, s.email AS subject, e.details
     FROM audit_events e JOIN organization_domains d ON d.org_id = e.org_id
     LEFT JOIN users a ON a.id = e.actor_id LEFT JOIN users s ON s.id = e.subject_id
     WHERE d.domain = $1 AND e.type = $2 ORDER BY s.email, e.id`,
    [domain, type],
  );
}
