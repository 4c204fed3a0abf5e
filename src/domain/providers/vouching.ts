import { domainOfEmail } from '#domain/organizations/email-address.js';
import type { ProviderConfig } from '#platform/config/config.js';
import { providerVariable } from '#platform/config/provider-settings.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { UpstreamIdentity } from './upstream-identity.js';

/**
 * The part of a provider's configuration that decides for which e-mail domains the service believes
 * the provider (for which domains it may vouch).
 */
export type VouchingProvider = Pick<ProviderConfig, 'slug' | 'domains'>;

/**
 * Returns true if a list contains a domain by its own name or by a wildcard. The entry
 * `*.example.com` stands for every domain below `example.com`.
 */
export function namesDomain(patterns: readonly string[], domain: string): boolean {
  return patterns.some((pattern) =>
    pattern.startsWith('*.') ? domain.endsWith(pattern.slice(1)) : domain === pattern,
  );
}

/**
 * Returns true if the configured list of domains of a provider contains a domain. For a provider
 * without a list the result is false, although the service believes it for every domain.
 */
export function isNamedBy(
  providers: readonly VouchingProvider[],
  slug: string,
  domain: string,
): boolean {
  const patterns = providers.find((provider) => provider.slug === slug)?.domains;
  return patterns !== undefined && namesDomain(patterns, domain);
}

/**
 * Refuses an identity if the service does not believe its provider for the domain of the e-mail
 * address or of the organization. If the provider is no longer configured, every identity is
 * refused.
 *
 * @throws DomainError with the given code
 */
export function assertVouched(
  providers: readonly VouchingProvider[],
  { provider, email, organizationDomain }: UpstreamIdentity,
  code: 'sign_in_refused' | 'enrollment_refused' = 'sign_in_refused',
): void {
  const refused = (detail: string) => new DomainError(code, detail);
  const configured = providers.find(({ slug }) => slug === provider);
  if (!configured) {
    throw refused('The identity provider of this sign-in is not in use any more. Sign in again.');
  }
  const { domains } = configured;
  const claimed = [
    domainOfEmail(email),
    ...(organizationDomain === null ? [] : [organizationDomain]),
  ];
  if (domains === undefined || claimed.every((domain) => namesDomain(domains, domain))) return;
  throw refused(
    'This identity provider does not sign in users of your e-mail domain. Sign in through another one, or ask the operator of the service.',
  );
}

/**
 * Returns a warning for each provider whose e-mail addresses the service believes for every domain,
 * although there are several providers. The warning names the variable that limits the domains.
 */
export function vouchingWarnings(providers: readonly VouchingProvider[]): string[] {
  if (providers.length < 2) return [];
  return providers
    .filter(({ domains }) => domains === undefined)
    .map(
      ({ slug }) =>
        `${providerVariable(slug, 'DOMAINS')}: is not set although there are several identity providers; ` +
        `${slug} may vouch for every domain, so that its administrator can found, or sign in to, the organization of any domain`,
    );
}

/**
 * Returns true if the service believes a provider for the domain of an e-mail address. A provider
 * without a list of domains is believed for every domain; one that is not configured, for none.
 */
export function mayVouchFor(
  providers: readonly VouchingProvider[],
  slug: string,
  address: string,
): boolean {
  const provider = providers.find((one) => one.slug === slug);
  if (!provider) return false;
  return provider.domains === undefined || namesDomain(provider.domains, domainOfEmail(address));
}
