import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The events that end access of users. `credentials-revoked`: all credentials of the user end, and
 * the account stays. `domain-lost`: the organization does not own the domain of the user's e-mail
 * address any more. `admin-demoted`: the user lost the role of admin, stays a member, and keeps the
 * credentials that a member may have.
 */
export type RevocationScope =
  | 'account-deleted'
  | 'account-deactivated'
  | 'credentials-revoked'
  | 'email-changed'
  | 'domain-lost'
  | 'provider-withdrawn'
  | 'admin-demoted';

/** A user whose access ends. The transaction has locked the row of the user. */
export interface LockedUser {
  readonly id: string;
}

/** The reason and the author of a revocation, which the revoked rows and the audit log keep. */
export interface RevocationCause {
  readonly reason: string;
  /**
   * The author of the revocation: the id of a user, or a word for a program. Examples of the words
   * are `scim` (a request of a SCIM client), `dns` (the daily check of a domain) and `operator`.
   */
  readonly revokedBy: string;
}

/** The number of revoked items of each kind, under the name that the audit event gives the kind. */
export type RevokedCounts = Readonly<Record<string, number>>;

/**
 * The number of valid items, such as sessions, that were opened with one security key of a user.
 */
export interface CountOfKey {
  readonly keyId: string;
  readonly count: RevokedCounts;
}

/**
 * The result of one batch, which ends sessions or other items of any users in one transaction: the
 * numbers of ended items, and the place where the next batch begins.
 */
export interface EndedBatch {
  readonly counts: RevokedCounts;
  /**
   * The position after which the next batch begins, such as a serial; undefined after the last
   * batch.
   */
  readonly next: string | undefined;
}

/**
 * The most items that one call of `revokeOnRecord` ends in its transaction. The number is small
 * enough for the transaction to stay far below its time limit, unless very many rows depend on the
 * items.
 */
export const ON_RECORD_BATCH = 5000;

/** A domain that an organization owns or has lost. */
export interface DomainOfOrganization {
  readonly orgId: string;
  readonly domain: string;
}

/**
 * A kind of access, such as sessions or certificates. A user loses it together with the account, or
 * with a part of the account such as a security key.
 */
export interface Revocable {
  /**
   * The position of this kind of access in `revocation-order.ts`: a kind with a lower number locks
   * its rows and ends first. No two kinds share a number.
   */
  readonly revocationOrder: number;
  /**
   * The events at which {@link revoke} ends items of this kind. An event at which a foreign key
   * ends them is not in this set.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope>;
  /**
   * The events at which a foreign key deletes the items of this kind. The service does not call
   * `revoke` then, and {@link count} tells how many items end.
   */
  readonly endedByForeignKey?: ReadonlySet<RevocationScope>;
  /**
   * Revokes every item of this kind that the given users have. The caller has locked the rows of
   * the users.
   */
  revoke(
    tx: EntityManager,
    users: readonly LockedUser[],
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Ends one batch of the items of all users, because the database has lost commits and revocations
   * may be among them. Each batch first locks the rows of its users. The value is null for a kind
   * whose items do not end after such a loss. The property is not optional, so that the author of
   * each new kind must decide.
   *
   * @param from the value of `next` from the previous batch; empty for the first batch
   * @param most the most items of the batch. A kind may ignore it if few rows depend on its items
   */
  readonly revokeOnRecord:
    | ((
        tx: EntityManager,
        cause: RevocationCause,
        from: string,
        most: number,
      ) => Promise<EndedBatch>)
    | null;
  /**
   * Counts the valid items of a user that would end now. `revoke` uses the same conditions, so that
   * a warning before the revocation and the response after it show the same numbers. If there is no
   * valid item, the counts may lack the name of the kind.
   */
  count(tx: EntityManager, user: LockedUser): Promise<RevokedCounts>;
  /**
   * Counts the items that `revoke` never ends, because a foreign key deletes them together with the
   * row of the user.
   */
  countByRow?(tx: EntityManager, user: LockedUser): Promise<RevokedCounts>;
  /**
   * Prepares the deletion of the rows of some users. It detaches the items that are too many for
   * the one statement by which a foreign key would delete them. The access by these items ends in
   * the same transaction.
   */
  detach?(tx: EntityManager, users: readonly LockedUser[]): Promise<void>;
  /**
   * Revokes the items of users without an organization whose e-mail address is in a domain, because
   * an organization now owns the domain.
   */
  revokeOfOutsiders?(tx: EntityManager, domain: string, cause: RevocationCause): Promise<unknown>;
  /**
   * Ends the items that need the proof of a domain, such as Kubernetes clusters under the domain,
   * because the organization lost the domain. The caller has already changed the row of the domain
   * and locked the rows of its users.
   */
  revokeOfDomain?(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Ends the items that other organizations have under a domain, such as Kubernetes clusters. An
   * organization has just proven the domain, and only the owner may have such items.
   */
  claimDomain?(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Revokes the items that were opened with one security key of the user. A kind whose rows a
   * foreign key deletes with their session does not need this method. The caller has locked the row
   * of the user.
   */
  revokeOfKey?(
    tx: EntityManager,
    user: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts>;
  /**
   * Counts the valid items of a user by the security key with which they were opened. With these
   * counts a page can warn before a key is removed.
   */
  countByKey?(tx: EntityManager, userId: string): Promise<readonly CountOfKey[]>;
}

/** Adds up several counts of revoked items, name by name. */
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
 * The value of `endedByForeignKey` for a kind of access with rows that a foreign key deletes
 * together with the row of the user.
 */
export const BY_DELETED_ROW: ReadonlySet<RevocationScope> = new Set(['account-deleted']);

export function idsOf(users: readonly LockedUser[]): string[] {
  return users.map(({ id }) => id);
}

/**
 * All events except the demotion of an admin, who stays a member. The set is for a kind of access
 * that ends at each of these events.
 */
export const EVERY_SCOPE: ReadonlySet<RevocationScope> = new Set([
  'account-deleted',
  'account-deactivated',
  'credentials-revoked',
  'email-changed',
  'domain-lost',
  'provider-withdrawn',
]);
