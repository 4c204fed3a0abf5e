import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { Denial } from './issuance-statement.repository.js';

const REFUSALS: Readonly<Record<Exclude<Denial, 'withheld'>, readonly [ErrorCode, string]>> = {
  gone: ['unauthenticated', 'The session has ended. Log in again.'],
  account_inactive: ['account_inactive', 'This account is deactivated.'],
  domain_not_owned: [
    'issuance_refused',
    'The domain of your e-mail address is not one that your organization has proven to own.',
  ],
};

/**
 * Returns the error for a user whose credential was not issued.
 *
 * @param withheld the error if the condition of the kind of credential does not hold
 */
export function refusedIssuance(
  denial: Denial,
  withheld: readonly [ErrorCode, string],
): DomainError {
  return new DomainError(...(denial === 'withheld' ? withheld : REFUSALS[denial]));
}
