import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import {
  sumOf,
  withoutZeros,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { setTombstones } from '#domain/organizations/tombstones.repository.js';
import type { AccountAudit } from './account.js';
import {
  endedWith,
  forgetEnded,
  noteEnded,
  tiesOf,
  type RecordTie,
} from './record-ties.repository.js';
import { UserDirectory } from './user-directory.service.js';
import { UsersRepository, type User } from './users.repository.js';

/** The two ways to end the access of a user: the account is removed, or it stays, deactivated. */
export type EndKind = 'remove' | 'deactivate';

/**
 * A user who loses access by an act: the user that the act names, or a user who is tied to that
 * user.
 */
export interface EndingUser {
  readonly id: string;
  readonly kind: EndKind;
  /**
   * The ids of the SCIM records whose end of access also ends that of this user. Empty for the user
   * whom the admin or SCIM named.
   */
  readonly withRecords: readonly string[];
  /**
   * The kind of connection between this user and the SCIM records. A twin is a member who signed in
   * with an e-mail address of the record; a link connects two records with one address.
   */
  readonly tie: RecordTie['kind'] | undefined;
}

/** An act that ends the access of a user, with its author and the audit event. */
export interface RecordEnd extends Omit<RevocationCause, 'reason'> {
  readonly reason: Readonly<Record<EndKind, string>>;
  /**
   * True for an act of an admin. If an admin removed a user, SCIM cannot let the user sign in
   * again.
   */
  readonly byAdmin: boolean;
  /**
   * Returns the audit event about a user who loses access. `more` names the SCIM records because of
   * which the user loses it.
   */
  auditOf(user: User, kind: EndKind, more: Readonly<Record<string, unknown>>): AccountAudit;
}

/**
 * Ends the access of a SCIM record's user together with that of its twins (members who signed in
 * with an e-mail address of the record). Linked records are deactivated. All this happens in the
 * transaction of the act. The caller first locks the directory of the organization by
 * `lockDirectory`. Then the caller finds the users with {@link RecordEnds.reach}, and locks their
 * rows in the order of their ids.
 */
@Injectable()
export class RecordEnds {
  readonly #security = new Logger('security');

  constructor(
    private readonly users: UsersRepository,
    private readonly directory: UserDirectory,
    private readonly accessRevocation: AccessRevocation,
  ) {}

  /**
   * Finds the users who lose access together with a user, including the user. For a SCIM record
   * these are its twins (members who signed in with its e-mail address), and linked records with
   * their twins.
   */
  async reach(tx: EntityManager, named: string, kind: EndKind): Promise<EndingUser[]> {
    const id = named.toLowerCase(); // `record_ties` has ids in lower case
    const found = new Map<string, EndingUser>([
      [id, { id, kind, withRecords: [], tie: undefined }],
    ]);
    for (let frontier = [id]; frontier.length > 0;) {
      const ties = await tiesOf(tx, frontier);
      const next = new Set<string>();
      for (const tie of ties) {
        for (const [from, to] of directionsOf(tie)) {
          const ended = frontier.includes(from) ? found.get(from) : undefined;
          if (!ended || to === id) continue;
          const known = found.get(to);
          const ending = tie.kind === 'twin' ? ended.kind : 'deactivate';
          if (!known || (known.kind === 'deactivate' && ending === 'remove')) next.add(to);
          found.set(to, {
            id: to,
            kind: known?.kind === 'remove' ? 'remove' : ending,
            withRecords: [...new Set([...(known?.withRecords ?? []), from])],
            tie: tie.kind === 'twin' || known?.tie === 'twin' ? 'twin' : 'link',
          });
        }
      }
      frontier = [...next];
    }
    return [...found.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /**
   * Removes or deactivates users whose rows are locked, in the order of their ids. A user who is
   * already inactive is not deactivated again, except the user whom the admin or SCIM named.
   *
   * @returns the sums of the items that ended
   */
  async end(
    tx: EntityManager,
    reached: readonly EndingUser[],
    end: RecordEnd,
  ): Promise<RevokedCounts> {
    // The tombstones, which bar a new sign-in, are set before the removal. They are made from the
    // names of the record, which the removal deletes.
    for (const { id, kind, withRecords } of reached) {
      const user = kind === 'remove' ? await this.users.lock(tx, id) : undefined;
      if (!user || user.orgId === null) continue;
      const bar = { recordId: withRecords[0] ?? id, byAdmin: end.byAdmin };
      await setTombstones(tx, user.orgId, id, bar);
    }
    const counts: RevokedCounts[] = [];
    for (const ending of reached) counts.push(await this.#endOne(tx, ending, end));
    return sumOf(counts);
  }

  async #endOne(tx: EntityManager, ending: EndingUser, end: RecordEnd): Promise<RevokedCounts> {
    const { id, kind, withRecords, tie } = ending;
    const user = await this.users.lock(tx, id);
    const isNamed = withRecords.length === 0;
    if (!user || (kind === 'deactivate' && !user.active && !isNamed)) return {};
    const more = isNamed ? {} : { [tie === 'twin' ? 'twin_of' : 'linked_to']: withRecords };
    const scope = kind === 'remove' ? 'account-deleted' : 'account-deactivated';
    const byForeignKey = await this.accessRevocation.countByForeignKey(tx, user, scope);
    const deprovisioning = {
      reason: end.reason[kind],
      revokedBy: end.revokedBy,
      audit: end.auditOf(user, kind, more),
      endedByForeignKey: withoutZeros(byForeignKey),
    };
    if (!isNamed) this.#security.warn({ userId: id, ...more }, `a ${tie} ended with its record`);
    if (kind === 'remove') return this.directory.remove(tx, user, deprovisioning);
    if (isNamed) await forgetEnded(tx, id);
    else if (tie === 'twin') await noteEnded(tx, withRecords, id);
    return this.directory.deactivate(tx, user, deprovisioning);
  }

  /**
   * Finds the users to activate together with a SCIM record: the record, and the members who were
   * deactivated because of it.
   */
  async revived(tx: EntityManager, named: string): Promise<string[]> {
    const recordId = named.toLowerCase(); // `record_ties` has ids in lower case
    return [recordId, ...(await endedWith(tx, recordId))].toSorted();
  }

  /** Activates the users that {@link RecordEnds.revived} found, whose rows are locked. */
  async activate(
    tx: EntityManager,
    ids: readonly string[],
    recordId: string,
    auditOf: (user: User, more: Readonly<Record<string, unknown>>) => AccountAudit,
  ): Promise<void> {
    for (const id of ids) {
      const user = await this.users.lock(tx, id);
      if (!user) continue;
      await forgetEnded(tx, id);
      if (user.active) continue;
      const more = id === recordId ? {} : { twin_of: [recordId] };
      await this.directory.activate(tx, user, auditOf(user, more));
    }
  }
}

/**
 * Returns pairs of users: if the access of the first one ends, that of the second one ends, too. A
 * twin loses access with its record. Each of two linked records, if it is active, loses access with
 * the other one.
 */
function directionsOf(tie: RecordTie): (readonly [from: string, to: string])[] {
  const { recordId, userId, kind, isRecordActive, isUserActive } = tie;
  if (kind === 'twin') return [[recordId, userId]];
  return [
    ...(isUserActive ? [[recordId, userId] as const] : []),
    ...(isRecordActive ? [[userId, recordId] as const] : []),
  ];
}
