import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The events that end access of users. `domain-lost`: the organization does not own the domain of
 * the e-mail any more.
 */
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

/** The reason and the author of a revocation, as the revocation records keep them. */
export interface RevocationCause {
  readonly reason: string;
  /**
   * The author of the revocation: `scim`, `upstream`, `organization`, `dns`, or the id of an admin.
   */
  readonly revokedBy: string;
}

/** The number of revoked items, each under the name that the audit event gives it. */
export type RevokedCounts = Readonly<Record<string, number>>;

/** The number of valid items that one key of a user opened. */
export interface CountOfKey {
  readonly keyId: string;
  readonly count: RevokedCounts;
}

/** The items of all users that ended in one transaction. */
export interface EndedBatch {
  readonly counts: RevokedCounts;
  /** The place from which the next batch goes on; undefined after the last batch. */
  readonly next: string | undefined;
}

/**
 * The number of items that one transaction ends if everything on record ends. The number is small
 * enough for the transaction to end long before its time limit.
 */
export const ON_RECORD_BATCH = 5000;

/** A domain of an organization. */
export interface DomainOfOrganization {
  readonly orgId: string;
  readonly domain: string;
}

/** A kind of access that a user loses with an account, or with a part of an account. */
export interface Revocable {
  /**
   * The number of the kind in `revocation-order.ts`: a kind with a lower number locks its rows and
   * ends first. No two kinds share a number.
   */
  readonly revocationOrder: number;
  /**
   * The events at which {@link revoke} ends the kind. An event that ends the kind by a foreign key
   * is not among them.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope>;
  /**
   * The events that end the kind by a foreign key: `revoke` is not called, and {@link count} says
   * what they end.
   */
  readonly endedByForeignKey?: ReadonlySet<RevocationScope>;
  /** Revokes every item of some users. The caller holds the locks on their rows. */
  revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Ends the items of all users in batches, because the database has lost commits. Each batch first
   * locks the rows of its users. A kind whose items do not end has null here. The property is not
   * optional, so that each new kind must decide.
   *
   * @param from the place after the previous batch; empty for the first batch
   */
  readonly revokeOnRecord:
    ((tx: EntityManager, cause: RevocationCause, from: string) => Promise<EndedBatch>) | null;
  /**
   * Counts the valid items of a user that would end now. The conditions are those of `revoke`, so
   * that a page that warns of an act and the response to the act show the same numbers. A kind
   * without an item may leave its name out.
   */
  count(tx: EntityManager, user: LockedUser): Promise<RevokedCounts>;
  /**
   * Counts the items that `revoke` leaves, and that a foreign key ends with the row of the user.
   */
  countByRow?(tx: EntityManager, user: LockedUser): Promise<RevokedCounts>;
  /** Revokes the items of users without an organization whose e-mail address is in a domain. */
  revokeOfOutsiders?(tx: EntityManager, domain: string, cause: RevocationCause): Promise<unknown>;
  /**
   * Ends the items that need the proof of a domain and belong to no user.
   * The caller has already changed the row of the domain and locked the rows of its users.
   */
  revokeOfDomain?(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Ends the items that other organizations have under a domain. An organization has just proven
   * the domain, so only that organization may have such items.
   */
  claimDomain?(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Revokes the items that a key of the user opened. A kind whose rows end with a session by a
   * foreign key does not need this method. The caller holds the lock on the row of the user.
   */
  revokeOfKey?(
    tx: EntityManager,
    user: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Counts the valid items of a user by the key that opened them, for a page that warns before the
   * removal of a key.
   */
  countByKey?(tx: EntityManager, userId: string): Promise<readonly CountOfKey[]>;
}

/** Adds counts, by their names. */
export function sumOf(counts: readonly RevokedCounts[]): RevokedCounts {
  const sums: Record<string, number> = {};
  for (const [name, n] of counts.flatMap((each) => Object.entries(each))) {
    sums[name] = (sums[name] ?? 0) + n;
  }
  return sums;
}

/** Leaves out the names with a count of zero, because an audit event lists only what ended. */
export function withoutZeros(counts: RevokedCounts): RevokedCounts {
  return Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0));
}

/**
 * The event of a deleted account, for a kind whose rows a foreign key deletes with the row of the
 * user and by no other event.
 */
export const BY_DELETED_ROW: ReadonlySet<RevocationScope> = new Set(['account-deleted']);

/** Returns the ids of some users. */
export function idsOf(users: readonly LockedUser[]): string[] {
  return users.map(({ id }) => id);
}

/** All events, for a kind that ends with every loss of access. */
export const EVERY_SCOPE: ReadonlySet<RevocationScope> = new Set([
  'account-deleted',
  'account-deactivated',
  'credentials-revoked',
  'email-changed',
  'domain-lost',
  'provider-withdrawn',
]);
