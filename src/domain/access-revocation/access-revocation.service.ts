import { Injectable } from '@nestjs/common';
import { CANCELED, sqlStateOf } from '#platform/database/statements/faults.js';
import { smallerAfter } from '#platform/database/statements/smaller-batch.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  ON_RECORD_BATCH,
  sumOf,
  type CountOfKey,
  type DomainOfOrganization,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevocationScope,
  type RevokedCounts,
} from './revocable.js';

const NOTHING_LEFT: EndedBatch = { counts: {}, next: undefined };

/**
 * The most users whose access one call of `revoke` ends, so that no statement exceeds its time
 * limit.
 */
const BATCH = 500;

/** An event that ends access of users, with the kinds of access that end at it. */
interface EndOfUsers {
  readonly ending: readonly Revocable[];
  readonly scope: RevocationScope;
  readonly cause: RevocationCause;
}

/**
 * Ends the access of users in the caller's transaction, so that either all of it ends or none.
 *
 * The row of the user is locked first. Then each registered kind of access, such as sessions, ends
 * in this order:
 *
 *     lock the user -> notices to applications -> sessions with their grants, codes and tokens
 *         -> certificates -> attested SSH keys -> GitHub tokens -> applications with their tokens
 *         -> clusters -> API tokens -> re-enrollment passes -> event receivers
 *         -> security keys
 */
@Injectable()
export class AccessRevocation {
  #revocables: readonly Revocable[] = [];

  /**
   * Adds a kind of access, such as SSH certificates, that must end if its user loses access. The
   * module of the kind calls this method at start-up.
   */
  register(revocable: Revocable): void {
    const order = revocable.revocationOrder;
    if (this.#revocables.some(({ revocationOrder }) => revocationOrder === order)) {
      throw new Error(`Two kinds of access have the revocation order ${order}.`);
    }
    this.#revocables = [...this.#revocables, revocable].toSorted(
      (a, b) => a.revocationOrder - b.revocationOrder,
    );
  }

  /**
   * Revokes everything that an event, such as the deletion of an account, ends for the given users.
   * It takes the users in batches, so that no statement exceeds its time limit. Of a batch that
   * exceeds it all the same, the halves are revoked one after the other, because a user may have
   * thousands of grants.
   *
   * @param tx a transaction that has locked the rows of the users
   * @param scope the event
   * @returns the numbers of revoked items, for the audit event
   */
  async end(
    tx: EntityManager,
    users: readonly LockedUser[],
    scope: RevocationScope,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const ending = this.#revocables.filter(({ revocationScopes }) => revocationScopes.has(scope));
    if (ending.length === 0) throw new Error(`No kind of access is registered for ${scope}.`);
    const counts: RevokedCounts[] = [];
    for (let from = 0; from < users.length; from += BATCH) {
      const batch = users.slice(from, from + BATCH);
      counts.push(await this.#endBatch(tx, batch, { ending, scope, cause }));
    }
    return sumOf(counts);
  }

  /**
   * Revokes the items of one batch of users. A batch of several users runs in a savepoint, so that
   * the transaction can go on with its halves if a statement exceeds its time limit.
   */
  async #endBatch(
    tx: EntityManager,
    users: readonly LockedUser[],
    of: EndOfUsers,
  ): Promise<RevokedCounts> {
    if (users.length <= 1) return this.#endOf(tx, users, of);
    try {
      return await withTransactionRetry(tx, (savepoint) => this.#endOf(savepoint, users, of));
    } catch (error) {
      if (sqlStateOf(error) !== CANCELED) throw error;
      const half = Math.ceil(users.length / 2);
      return sumOf([
        await this.#endBatch(tx, users.slice(0, half), of),
        await this.#endBatch(tx, users.slice(half), of),
      ]);
    }
  }

  async #endOf(
    tx: EntityManager,
    users: readonly LockedUser[],
    { ending, scope, cause }: EndOfUsers,
  ): Promise<RevokedCounts> {
    const counts: RevokedCounts[] = [];
    for (const revocable of ending) counts.push(await revocable.revoke(tx, users, cause));
    if (scope === 'account-deleted') {
      for (const revocable of this.#revocables) await revocable.detach?.(tx, users);
    }
    return sumOf(counts);
  }

  /**
   * Counts, for each event in `scopes`, the sessions, certificates and other items of a user that
   * the event would end now. Items that a foreign key deletes are included. If the transaction has
   * locked the row of the user, exactly these items end at the event.
   */
  async count<Scope extends RevocationScope>(
    tx: EntityManager,
    user: LockedUser,
    scopes: readonly Scope[],
  ): Promise<Readonly<Record<Scope, RevokedCounts>>> {
    const ofScope = new Map<RevocationScope, RevokedCounts[]>(scopes.map((scope) => [scope, []]));
    for (const revocable of this.#revocables) {
      const ending = scopes.filter((scope) => revocable.revocationScopes.has(scope));
      if (ending.length === 0) continue;
      const items = await revocable.count(tx, user);
      for (const scope of ending) ofScope.get(scope)?.push(items);
    }
    const sums: [Scope, RevokedCounts][] = [];
    for (const scope of scopes) {
      const byForeignKey = await this.countByForeignKey(tx, user, scope);
      sums.push([scope, sumOf([...(ofScope.get(scope) ?? []), byForeignKey])]);
    }
    return Object.fromEntries(sums) as Record<Scope, RevokedCounts>;
  }

  /**
   * Counts the sessions and other items of a user that the database itself deletes at an event.
   * They refer by a foreign key to a row that the event deletes. `revoke` is not called for these
   * items, so its counts lack them.
   */
  async countByForeignKey(
    tx: EntityManager,
    user: LockedUser,
    scope: RevocationScope,
  ): Promise<RevokedCounts> {
    const counts: RevokedCounts[] = [];
    for (const revocable of this.#revocables) {
      if (revocable.endedByForeignKey?.has(scope) !== true) continue;
      counts.push(await revocable.count(tx, user));
      counts.push((await revocable.countByRow?.(tx, user)) ?? {});
    }
    return sumOf(counts);
  }

  /**
   * Removes one security key of a user with everything that was opened with the key, such as
   * sessions.
   *
   * @param tx a transaction that has locked the row of the user
   * @returns the counts for the audit event
   */
  async endOfKey(
    tx: EntityManager,
    user: LockedUser,
    keyId: string,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    let counts: RevokedCounts = {};
    for (const revocable of this.#revocables) {
      counts = { ...counts, ...(await revocable.revokeOfKey?.(tx, user, keyId, cause)) };
    }
    return counts;
  }

  /**
   * Counts the items that the removal of each security key of a user would end. A key with which
   * nothing was opened is not in the result.
   */
  async countByKey(tx: EntityManager, userId: string): Promise<ReadonlyMap<string, RevokedCounts>> {
    const found: CountOfKey[] = [];
    for (const revocable of this.#revocables) {
      found.push(...((await revocable.countByKey?.(tx, userId)) ?? []));
    }
    const counts = new Map<string, RevokedCounts>();
    for (const { keyId, count } of found) counts.set(keyId, { ...counts.get(keyId), ...count });
    return counts;
  }

  /**
   * Ends the items of an organization that depend on the proof of a domain, such as Kubernetes
   * clusters under the domain. It is for an organization that lost the domain. The access of its
   * users is ended by {@link end}, and not by this method. The caller has already changed the row
   * of the domain.
   */
  endOfDomain(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    return this.#sumOfKinds((kind) => kind.revokeOfDomain?.(tx, domain, cause));
  }

  /**
   * Ends the items that other organizations have under a domain, such as Kubernetes clusters. An
   * organization has just proven that the domain is its own, and only the owner may have such
   * items.
   */
  claimDomain(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    return this.#sumOfKinds((kind) => kind.claimDomain?.(tx, domain, cause));
  }

  /**
   * Ends the access of all users, because the database has lost commits and revocations may be
   * among them. It ends one kind of access after the other, each in batches. The batches become
   * smaller if a statement exceeds its time limit. If the process is killed, another call ends the
   * rest.
   *
   * @param transact runs each batch in a transaction of its own
   * @returns the numbers of ended items
   */
  async endOnRecord(
    transact: (work: (tx: EntityManager) => Promise<EndedBatch>) => Promise<EndedBatch>,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const counts: RevokedCounts[] = [];
    for (const kind of this.#revocables) {
      let next: string | undefined = '';
      let most = ON_RECORD_BATCH;
      while (next !== undefined) {
        const [from, size]: [string, number] = [next, most];
        try {
          const batch = await transact(
            async (tx) => (await kind.revokeOnRecord?.(tx, cause, from, size)) ?? NOTHING_LEFT,
          );
          counts.push(batch.counts);
          next = batch.next;
        } catch (error) {
          most = smallerAfter(error, most);
        }
      }
    }
    return sumOf(counts);
  }

  /**
   * Calls `end` for each kind of access, in the order of the kinds, and adds up the counts of ended
   * items.
   */
  async #sumOfKinds(
    end: (kind: Revocable) => Promise<RevokedCounts> | undefined,
  ): Promise<RevokedCounts> {
    const counts: RevokedCounts[] = [];
    for (const kind of this.#revocables) counts.push((await end(kind)) ?? {});
    return sumOf(counts);
  }

  /**
   * Revokes the SSH certificates of users without an organization whose e-mail address is in a
   * domain, which the caller has given to an organization. No other kind of access has a
   * `revokeOfOutsiders`: the sessions of these users stay.
   */
  async endOfOutsiders(tx: EntityManager, domain: string, cause: RevocationCause): Promise<void> {
    for (const revocable of this.#revocables) {
      await revocable.revokeOfOutsiders?.(tx, domain, cause);
    }
  }
}
