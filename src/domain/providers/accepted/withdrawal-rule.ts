import { DomainError } from '#platform/errors/domain-error.js';

/** The facts that decide if an admin may withdraw a provider. */
export interface WithdrawalFacts {
  /** True when the configuration of the service has the provider. */
  readonly isConfigured: boolean;
  /** The same of each other provider that the organization accepts. */
  readonly others: readonly boolean[];
  /** True when the admin is bound through no other provider of the organization. */
  readonly isOwn: boolean;
}

/**
 * Checks that an organization keeps a provider, and the admin a way to sign in. A provider that is
 * not configured any more does not count in place of one that is.
 *
 * @throws DomainError last_provider, own_provider
 */
export function assertMayWithdraw({ isConfigured, others, isOwn }: WithdrawalFacts): void {
  const remains = isConfigured ? others.includes(true) : others.length > 0;
  if (!remains) {
    throw new DomainError(
      'last_provider',
      'This is the last identity provider of your organization. Allow another one first.',
    );
  }
  if (isOwn) {
    throw new DomainError(
      'own_provider',
      'You sign in through this identity provider. Sign in through another one of your organization first, or ask another admin.',
    );
  }
}
