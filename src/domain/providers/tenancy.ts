import { DomainError } from '#platform/errors/domain-error.js';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { isMicrosoftIssuer, isPersonalTenant, tenantTemplate } from './openid/microsoft-issuer.js';

/** The issuer of Google, which serves every Workspace organization. */
export const GOOGLE_ISSUER = 'https://accounts.google.com';

/**
 * The tenants (customers) that a provider serves: one tenant, or many tenants of Microsoft or of
 * Google.
 */
export type Tenancy =
  { readonly kind: 'one'; readonly tenant: string } | { readonly kind: 'microsoft' | 'google' };

/**
 * The tenancy of a provider that serves one customer and knows no tenants. Its identities have an
 * empty `tenant`.
 */
export const NO_TENANTS: Tenancy = { kind: 'one', tenant: '' };

/** An issuer as ID tokens name it, and the tenant of the user. */
export interface IssuerTenant {
  readonly issuer: string;
  readonly tenant: string;
}

/**
 * The tenancy of an identity provider: its configured issuer, and the tenants (customers) that it
 * serves.
 */
export interface TenantedProvider {
  readonly issuer: string;
  readonly tenancy: Tenancy;
}

const UUID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/;
const UUID_ALONE = new RegExp(`^${UUID.source}$`);
const DOMAIN_NAME =
  /^(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** Returns which tenants a configured OpenID Connect issuer serves. */
export function tenancyOf(issuer: string): Tenancy {
  if (issuer === GOOGLE_ISSUER) return { kind: 'google' };
  if (tenantTemplate(issuer) !== undefined) return { kind: 'microsoft' };
  if (!isMicrosoftIssuer(issuer)) return NO_TENANTS;
  // The issuer of one Microsoft tenant has the tenant's id in its path, the same as the `tid` of
  // its tokens.
  return { kind: 'one', tenant: UUID.exec(asciiLowerCase(issuer))?.[0] ?? '' };
}

/**
 * Returns the issuer and the tenant of the identities that an organization wants to accept from a
 * provider.
 *
 * @param tenant the tenant that an admin named
 * @throws DomainError invalid_request for a missing or malformed tenant, and for a tenant if the
 *   provider needs none
 */
export function issuerTenant(
  { issuer, tenancy }: TenantedProvider,
  tenant: string | undefined,
): IssuerTenant {
  if (tenancy.kind === 'one') {
    if (tenant === undefined) return { issuer, tenant: tenancy.tenant };
    throw invalid('this provider serves one tenant: leave `tenant` out.');
  }
  const named = asciiLowerCase(tenant ?? '');
  if (tenancy.kind === 'google') {
    if (DOMAIN_NAME.test(named)) return { issuer, tenant: named };
    throw invalid(
      'name the primary domain of the Google Workspace organization, such as acme.com.',
    );
  }
  if (!UUID_ALONE.test(named) || isPersonalTenant(named)) {
    throw invalid('name the directory (tenant) ID of the Microsoft Entra tenant, which is a UUID.');
  }
  const template = tenantTemplate(issuer) ?? '';
  return { issuer: template.replace('{tenantid}', named), tenant: named };
}

/**
 * Returns true if users can sign in through a provider with identities of this issuer and tenant.
 */
export function servesTenant(
  { issuer, tenancy }: TenantedProvider,
  accepted: IssuerTenant,
): boolean {
  if (tenancy.kind === 'microsoft') {
    return tenantTemplate(issuer)?.replace('{tenantid}', accepted.tenant) === accepted.issuer;
  }
  return issuer === accepted.issuer;
}

/**
 * Returns the issuer of the identities that a provider gives. If each tenant has its own issuer,
 * the result has `{tenantid}` in place of the tenant.
 */
export function issuerTemplate({ issuer, tenancy }: TenantedProvider): string {
  return tenancy.kind === 'microsoft' ? (tenantTemplate(issuer) ?? issuer) : issuer;
}

/**
 * Returns true if users can sign in through a provider with identities of this issuer, for any
 * tenant.
 */
export function mayNameIssuer({ issuer, tenancy }: TenantedProvider, named: string): boolean {
  if (tenancy.kind !== 'microsoft') return issuer === named;
  const [before = '', after = ''] = tenantTemplate(issuer)?.split('{tenantid}') ?? [];
  return named.startsWith(before) && named.endsWith(after);
}

function invalid(problem: string): DomainError {
  return new DomainError('invalid_request', `tenant: ${problem}`);
}
