import { DomainError } from '#platform/errors/domain-error.js';

/**
 * The facts that decide if an admin may withdraw a provider, so that members can no longer sign in
 * through it.
 */
export interface WithdrawalFacts {
  /** True if the provider is in the configuration of the service. */
  readonly isConfigured: boolean;
  /**
   * For each other provider that the organization accepts: true if it is in the configuration of
   * the service.
   */
  readonly others: readonly boolean[];
  /**
   * True if the admin is bound to no identity of another provider of the organization, and so could
   * not sign in any more.
   */
  readonly isOwn: boolean;
}

/**
 * Checks that an organization keeps another provider if an admin withdraws one, and that the admin
 * can sign in without the withdrawn provider. If the withdrawn provider is in the configuration of
 * the service, one of the remaining providers must be in it, too. No user can sign in through a
 * provider that is not configured.
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
