import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { Deprovisioning, LockedAccount } from '#domain/directory/account.js';
import type { UserDirectory } from '#domain/directory/user-directory.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { mintPass, type GivenPass } from './enrollment-pass.js';
import type { EnrollmentPassesRepository } from './enrollment-passes.repository.js';

/**
 * A new re-enrollment pass, and the numbers of credentials and sessions that ended in the same
 * transaction.
 */
export interface Renewal {
  readonly pass: GivenPass;
  readonly ended: RevokedCounts;
}

/**
 * Ends the keys, sessions and certificates of a user, and makes a re-enrollment pass, with which
 * alone the user can enroll a key again. An earlier pass is replaced. The caller has locked the row
 * of the user.
 *
 * @param createdBy the id of the admin; null for the operator of the service
 * @throws DomainError account_inactive, because a deactivated user cannot sign in to use the pass
 */
export async function givePass(
  tx: EntityManager,
  parts: { readonly directory: UserDirectory; readonly passes: EnrollmentPassesRepository },
  user: LockedAccount,
  deprovisioning: Deprovisioning,
  createdBy: string | null,
): Promise<Renewal> {
  if (!user.active) {
    throw new DomainError('account_inactive', 'This account is deactivated. Activate it first.');
  }
  const ended = await parts.directory.revokeCredentials(tx, user, deprovisioning);
  const { token, hash } = mintPass();
  const expiresAt = await parts.passes.replace(tx, user.id, hash, createdBy);
  return { pass: { secret: token, expiresAt }, ended };
}
