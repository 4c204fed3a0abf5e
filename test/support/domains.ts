import { Module, type DynamicModule } from '@nestjs/common';
import { DomainRechecks } from '../../src/domain/organizations/domains/domain-rechecks.service.js';
import { DNS_OPTIONS, type DnsOptions } from '../../src/platform/outbound/txt-records.js';
import type { TestApp } from './app.js';
import type { Client } from './client.js';
import type { DnsServer } from './dns-server.js';
import { orgApi } from './org-api.js';
import { rows } from './rows.js';

@Module({})
class DnsModule {}

/** Makes a Nest module by which the service sends its DNS questions to the server of the test. */
export function dnsModule(options: DnsOptions): DynamicModule {
  return {
    module: DnsModule,
    global: true,
    providers: [{ provide: DNS_OPTIONS, useValue: options }],
    exports: [DNS_OPTIONS],
  };
}

/** A domain in the responses of the API. */
export interface ListedDomain {
  readonly domain: string;
  readonly primary: boolean;
  readonly state: string;
  readonly record: { readonly name: string; readonly type: string; readonly value: string };
  readonly proof: string | null;
  readonly verified_at: string | null;
  readonly last_checked_at: string | null;
  readonly failures: number;
}

/** Adds a domain as an admin. */
export async function added(admin: Client, domain: string): Promise<ListedDomain> {
  const answer = await orgApi(admin, 'POST', '/domains', { domain });
  if (answer.status !== 201) throw new Error(`the domain was not added: ${answer.text}`);
  return answer.json as ListedDomain;
}

export const verify = (admin: Client, domain: string) =>
  orgApi(admin, 'POST', `/domains/${domain}/verify`, {});

export const removal = (admin: Client, domain: string) =>
  orgApi(admin, 'DELETE', `/domains/${domain}`);

/**
 * Adds a domain, publishes its DNS record at the test's server, and verifies the domain. Returns
 * the record.
 */
export async function proven(
  admin: Client,
  dns: DnsServer,
  domain: string,
): Promise<ListedDomain['record']> {
  const { record } = await added(admin, domain);
  dns.replies.set(record.name, { texts: [record.value] });
  const answer = await verify(admin, domain);
  if (answer.status !== 200) throw new Error(`the domain was not verified: ${answer.text}`);
  return record;
}

/** Finds a domain in the organization's list; undefined if it is not listed. */
export async function listed(admin: Client, domain: string): Promise<ListedDomain | undefined> {
  const { domains } = (await orgApi(admin, 'GET', '/domains')).json as { domains: ListedDomain[] };
  return domains.find((one) => one.domain === domain);
}

/**
 * Makes the next DNS check of a domain due, and runs all due checks. Returns undefined if another
 * process runs the checks at this time.
 */
export async function recheck(app: TestApp, domain: string): Promise<number | undefined> {
  await rows(
    app.dataSource,
    `UPDATE organization_domains SET next_check_at = now() - interval '1 second'
     WHERE domain = $1 AND next_check_at IS NOT NULL`,
    [domain],
  );
  return app.nest.get(DomainRechecks, { strict: false }).run();
}

/** Returns the audit events about a domain, the oldest first. */
export const auditOfDomain = (app: TestApp, domain: string) =>
  rows<{ type: string; class: string; actor: string | null; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT type, class, actor_email AS actor, details FROM audit_events
     WHERE details ->> 'domain' = $1 AND (type LIKE 'org_domain_%' OR type IN ('domain_assigned', 'domain_released')) ORDER BY created_at, id`,
    [domain],
  );

/**
 * Adds a verified domain to the organization of a user, with the row that the operator's assignment
 * would write.
 */
export async function assigned(app: TestApp, email: string, domain: string): Promise<void> {
  await rows(
    app.dataSource,
    `INSERT INTO organization_domains (org_id, domain, is_primary, verified_at, assigned_at)
     SELECT org_id, $2, false, now(), now() FROM users WHERE email = $1
     ON CONFLICT (org_id, domain) DO UPDATE SET assigned_at = now(), verified_at = now()`,
    [email, domain],
  );
}

/**
 * Makes the ownership of all domains begin a minute earlier. A Git signature must be made after
 * that beginning, in whole seconds, and a test signs within the first second.
 */
export async function ownDomainsForLonger(app: TestApp): Promise<void> {
  await rows(
    app.dataSource,
    `UPDATE organization_domains SET verified_at = verified_at - interval '1 minute'`,
  );
}
