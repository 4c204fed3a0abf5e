import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The events that end access of users. `domain-lost`: the organization does not own the domain of the e-mail any more. */
export type RevocationScope =
  | 'account-deleted'
  | 'account-deactivated'
  | 'credentials-revoked'
  | 'email-changed'
  | 'domain-lost'
  | 'provider-withdrawn';

/** A user whose row the transaction has locked. */
export interface LockedUser {
  readonly id: string;
}

/** The reason of a revocation, as the revocation records keep it. */
export interface RevocationCause {
  readonly reason: string;
  /** `scim`, `upstream`, `organization`, `dns`, or the id of an admin. */
  readonly revokedBy: string;
}

/** The number of revoked items, each under the name that the audit event gives it. */
export type RevokedCounts = Readonly<Record<string, number>>;

/** The number of valid items that one key of a user opened. */
export interface CountOfKey {
  readonly keyId: string;
  readonly count: RevokedCounts;
}

/** A kind of access that a user loses with an account, or with a part of an account. */
export interface Revocable {
  /** The place of the kind in the order of locks: a lower number ends first. No two kinds share a number. */
  readonly revocationOrder: number;
  /** The events that end the kind. A kind that ends by a foreign key does not list the event. */
  readonly revocationScopes: ReadonlySet<RevocationScope>;
  /** Revokes every item of some users. The caller holds the locks on their rows. */
  revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /** Revokes the items of users without an organization whose e-mail address is in a domain. */
  revokeOfOutsiders?(tx: EntityManager, domain: string, cause: RevocationCause): Promise<unknown>;
  /**
   * Revokes the items that a key of the user opened. A kind that depends on a session by a foreign key does not need it. The caller
   * holds the lock on the row of the user.
   */
  revokeOfKey?(
    tx: EntityManager,
    user: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /** Counts the valid items of a user by the key that opened them, for a page that warns before the removal of a key. */
  countByKey?(tx: EntityManager, userId: string): Promise<readonly CountOfKey[]>;
}

/** Returns the ids of some users. */
export function idsOf(users: readonly LockedUser[]): string[] {
  return users.map(({ id }) => id);
}

/** All events: for a kind that ends whenever access ends. */
export const EVERY_SCOPE: ReadonlySet<RevocationScope> = new Set([
  'account-deleted',
  'account-deactivated',
  'credentials-revoked',
  'email-changed',
  'domain-lost',
  'provider-withdrawn',
]);
