import { DomainError } from '#platform/errors/domain-error.js';

/** The facts that decide if an admin may withdraw a provider. */
export interface WithdrawalFacts {
  /** True when the configuration of the service has the provider. */
  readonly isConfigured: boolean;
  /**
   * For each other provider that the organization accepts: true when the configuration of the
   * service has it.
   */
  readonly others: readonly boolean[];
  /** True when the admin is bound through no other provider of the organization. */
  readonly isOwn: boolean;
}

/**
 * Checks that an organization keeps a provider, and that the admin can still sign in. A provider
 * that is no longer configured does not count as one that the organization keeps.
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
