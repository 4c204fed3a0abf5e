import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { AccountAudit } from '../account.js';
import { RecordEnds, type EndKind, type RecordEnd } from '../record-ends.service.js';
import {
  addLink,
  addTwin,
  holdersOf,
  untwin,
  withoutEffect,
  type AddressHolder,
} from '../record-ties.repository.js';
import { UsersRepository } from '../users.repository.js';
import {
  liftIdentities,
  liftTombstones,
  setTombstones,
} from '#domain/organizations/tombstones.repository.js';
import type { DirectoryUser } from './directory-user.js';
import {
  findDirectoryUser,
  findKnownUser,
  insertDirectoryUser,
  lockKnownUser,
  updateDirectoryUser,
  type KnownUser,
  type NextUser,
} from './directory-users.repository.js';
import {
  addressesBeyond,
  addressesIn,
  isSame,
  isSameName,
  namesAddress,
  planCreation,
} from './record-plan.js';
import { leftOutDetails, scimOperation, type ScimActor } from './scim-operation.js';

/** Details of an audit event in addition to those that every SCIM operation has. */
type Details = Readonly<Record<string, unknown>>;

/**
 * The writes of SCIM that change more than the plain attributes of a user. They change the e-mail
 * addresses with which the user signs in, `active`, or the ties to members who signed in before
 * SCIM named them. Each method runs in a transaction that has locked the directory of the
 * organization by `lockDirectory`.
 */
@Injectable()
export class RecordWrites {
  readonly #security = new Logger('security');

  constructor(
    private readonly users: UsersRepository,
    private readonly ends: RecordEnds,
    private readonly accessRevocation: AccessRevocation,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Creates a SCIM record, or takes over the member who signs in with one of its e-mail addresses.
   *
   * @throws DomainError uniqueness
   */
  async create(
    tx: EntityManager,
    actor: ScimActor,
    user: NextUser,
    id?: string,
  ): Promise<DirectoryUser> {
    const { has, plain } = addressesIn(user);
    const addresses = has.map(({ address }) => address);
    const holders = await holdersOf(tx, actor.orgId, [...addresses, ...plain]);
    if (holders.length === 0) return insertDirectoryUser(tx, actor, user, addresses, {}, id);
    const plan = planCreation(has, holders);
    await this.#lock(tx, actor, [
      ...(plan.takesOver ? await this.#reached(tx, plan.takesOver.id) : []),
      ...[...plan.twins, plan.moves, plan.links].flatMap((holder) => holder?.id ?? []),
    ]);
    if (plan.moves) await this.#takeAddress(tx, actor, plan.moves);
    const made = plan.takesOver
      ? await this.#takeOver(tx, actor, plan.takesOver, plan.twins, user)
      : await this.#insert(tx, actor, user, holders, plan, id);
    if (!plan.takesOver) await this.#addTwins(tx, actor, made, plan.twins);
    if (plan.links) await this.#link(tx, actor, made.id, plan.links);
    this.#warnOfPlain(actor, made.id, plain, holders);
    return plan.links || plan.twins.length > 0 ? this.#again(tx, actor, made.id) : made;
  }

  /**
   * Changes a user. If the user is a member who signed in and whom SCIM did not create, SCIM
   * manages the member from then on (a take-over).
   *
   * @param compute returns the state after the write, or throws
   * @returns undefined if the organization has no user with this id
   */
  async change(
    tx: EntityManager,
    actor: ScimActor,
    id: string,
    compute: (current: DirectoryUser) => NextUser,
  ): Promise<DirectoryUser | undefined> {
    const seen = await findKnownUser(tx, actor.orgId, id);
    if (!seen) return undefined;
    // The users that the change affects are computed before their rows are locked. This is safe,
    // because the caller has locked the directory, so that no other request changes an e-mail
    // address or `active`.
    const planned = compute(seen);
    const twins = await this.#newTwins(tx, actor, seen, planned);
    const reached = await this.#reachedBy(tx, seen, planned);
    await this.#lock(tx, actor, [id, ...reached, ...twins.map((twin) => twin.id)]);
    const current = await lockKnownUser(tx, actor.orgId, id);
    if (!current) return undefined;
    return this.#changeTo(tx, actor, current, compute(current), twins);
  }

  /**
   * Removes a SCIM record with its twins (members who signed in with an e-mail address of the
   * record), and deactivates linked records.
   *
   * @param verify throws to refuse the removal because of the present state, which is locked
   * @returns false if the organization has no user with this id
   */
  async remove(
    tx: EntityManager,
    actor: ScimActor,
    id: string,
    verify: (current: DirectoryUser) => void,
  ): Promise<boolean> {
    const reached = await this.ends.reach(tx, id, 'remove');
    await this.#lock(
      tx,
      actor,
      reached.map((each) => each.id),
    );
    const current = await lockKnownUser(tx, actor.orgId, id);
    if (!current) return false;
    verify(current);
    await this.ends.end(tx, reached, endOf(actor, {}));
    return true;
  }

  async #lock(tx: EntityManager, { orgId }: ScimActor, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.users.lockMembers(tx, orgId, [...new Set(ids)]);
  }

  async #again(tx: EntityManager, { orgId }: ScimActor, id: string): Promise<DirectoryUser> {
    const user = await findDirectoryUser(tx, orgId, id);
    if (!user) throw new Error('a locked user is gone');
    return user;
  }

  async #reached(tx: EntityManager, id: string): Promise<string[]> {
    return (await this.ends.reach(tx, id, 'deactivate')).map((each) => each.id);
  }

  /**
   * Finds the users whose access a change of `active` ends or restores. For a record that stays
   * inactive, finds the twins of the record, because they must not stay active. A twin is a member
   * who signed in with an e-mail address of the record.
   */
  async #reachedBy(tx: EntityManager, seen: KnownUser, planned: NextUser): Promise<string[]> {
    if (planned.active && !seen.active) return this.ends.revived(tx, seen.id);
    return planned.active ? [] : this.#reached(tx, seen.id);
  }

  /**
   * Finds the members who sign in with an e-mail address that the write newly gives to the record.
   * They become twins of the record, and lose access when the user of the record does.
   */
  async #newTwins(
    tx: EntityManager,
    { orgId }: ScimActor,
    seen: KnownUser,
    planned: NextUser,
  ): Promise<AddressHolder[]> {
    const before = seen.scimManaged ? addressesIn(stateOf(seen)).has : [];
    const newly = addressesBeyond(addressesIn(planned).has, before);
    if (newly.length === 0) return [];
    const { parted } = await withoutEffect(tx, seen.id);
    const counting = newly.filter((address) => !parted.has(address));
    const holders = await holdersOf(tx, orgId, counting);
    return holders.filter((holder) => !holder.scimManaged && holder.id !== seen.id);
  }

  /**
   * Inserts a SCIM record that takes no member over. If another user signs in with the e-mail
   * address of the record, the user of the record gets no address to sign in with. One address
   * belongs to one user.
   */
  #insert(
    tx: EntityManager,
    actor: ScimActor,
    user: NextUser,
    holders: readonly AddressHolder[],
    { moves }: { readonly moves: AddressHolder | undefined },
    id: string | undefined,
  ): Promise<DirectoryUser> {
    const isTaken = holders.some((holder) => holder !== moves && holder.email === user.email);
    const addresses = addressesIn(user).has.map(({ address }) => address);
    const next = isTaken ? { ...user, email: null } : user;
    const more = isTaken ? { email_taken: true } : {};
    return insertDirectoryUser(tx, actor, next, addresses, more, id);
  }

  /**
   * Takes an address away from the user of another SCIM record, who could sign in with it until
   * now. That record has the address only as an e-mail and not as its userName, and no person has
   * signed in as its user.
   */
  async #takeAddress(
    tx: EntityManager,
    actor: ScimActor,
    { id, email }: AddressHolder,
  ): Promise<void> {
    const { orgId } = actor;
    const cause = { reason: 'the address moved to another record', revokedBy: 'scim' };
    await this.users.clearEmail(tx, id);
    await this.accessRevocation.end(tx, [{ id }], 'email-changed', cause);
    const lost = { email: null, previous_email: email };
    await this.audit.record(tx, { ...auditOf(actor, 'update', id, lost), subjectId: id, orgId });
    this.#security.warn({ userId: id, orgId, email }, 'an address moved to another record');
  }

  /**
   * Takes a member over: the SCIM record gets the id, keys, sessions and e-mail address of the
   * member. An inactive member stays inactive.
   */
  async #takeOver(
    tx: EntityManager,
    actor: ScimActor,
    member: AddressHolder,
    twins: readonly AddressHolder[],
    user: NextUser,
  ): Promise<DirectoryUser> {
    const current = await lockKnownUser(tx, actor.orgId, member.id);
    if (!current) throw new Error('a locked member is gone');
    return this.#changeTo(tx, actor, current, user, twins, 'create');
  }

  async #link(
    tx: EntityManager,
    { orgId }: ScimActor,
    recordId: string,
    holder: AddressHolder,
  ): Promise<void> {
    const tie = { orgId, recordId, userId: holder.id, address: holder.email };
    await addLink(tx, tie);
    this.#security.warn(
      { orgId, userId: recordId, linkedTo: holder.id, email: holder.email },
      'a new record is linked to the user who signs in with its userName',
    );
  }

  /**
   * Changes a user whose row is locked. A new e-mail address ends the access that the user got
   * under the old address. A change of `active` ends or restores access.
   */
  async #changeTo(
    tx: EntityManager,
    actor: ScimActor,
    current: KnownUser,
    asked: NextUser,
    twins: readonly AddressHolder[],
    operation: 'create' | 'update' = 'update',
  ): Promise<DirectoryUser> {
    const isTakeOver = !current.scimManaged;
    const next = await this.#settled(tx, current, asked);
    if (!isTakeOver && isSame(current, next) && twins.length === 0) {
      // An admin may have activated a twin of the inactive record since the last `active: false`.
      if (next.endsAccess) await this.#applyActive(tx, actor, current, next, {});
      return current;
    }
    if (isTakeOver) await untwin(tx, current.id);
    for (const twin of twins) await this.#addTwin(tx, actor, current.id, twin);
    const tombstones = await this.#moveTombstones(tx, actor, current, next);
    const moved = { ...tombstones, ...leftOutDetails(next.leftOut) };
    const changesActive = next.active !== current.active;
    const isRevoked = operation === 'update' && changesActive;
    const changed = await updateDirectoryUser(
      tx,
      actor,
      current,
      next,
      isRevoked ? false : moved,
      operation,
    );
    if (!changed) throw new Error('a locked user is of another version');
    if (isTakeOver) await this.#recordTakeOver(tx, actor, current, next);
    if (next.email !== current.email) {
      const cause = { reason: 'e-mail changed', revokedBy: 'scim' };
      await this.accessRevocation.end(tx, [current], 'email-changed', cause);
    }
    await this.#warnOfNewPlain(tx, actor, current, next);
    if (!(await this.#applyActive(tx, actor, current, next, moved))) return changed;
    return this.#again(tx, actor, current.id);
  }

  /**
   * Decides the e-mail address and `active` of a user after a write. A member who was taken over
   * keeps the address as long as any attribute of the record names it. The user never gets an
   * address that another user has, or from which an admin separated the record. A write that takes
   * a member over never activates the member.
   */
  async #settled(tx: EntityManager, current: KnownUser, asked: NextUser): Promise<NextUser> {
    const { id, orgId, email, scimManaged, isTakenOver } = current;
    const next = scimManaged ? asked : { ...asked, active: asked.active && current.active };
    const keeps = !scimManaged || isTakenOver;
    if (keeps && email !== null && namesAddress(asked, email)) return { ...next, email };
    if (next.email === null || next.email === email) return next;
    const { parted, withheld } = await withoutEffect(tx, id);
    const free = addressesIn(next).has.find(({ address }) => !parted.has(address))?.address;
    const wanted = parted.size === 0 ? next.email : (free ?? null);
    if (wanted === null || wanted === email) return { ...next, email: wanted };
    const holders = await holdersOf(tx, orgId, [wanted]);
    const isTaken = withheld.has(wanted) || holders.some((holder) => holder.id !== id);
    return { ...next, email: isTaken ? null : wanted };
  }

  /**
   * Adds the twins of a new record. If the record is inactive from the beginning, it ends their
   * access.
   */
  async #addTwins(
    tx: EntityManager,
    actor: ScimActor,
    { id, active }: DirectoryUser,
    twins: readonly AddressHolder[],
  ): Promise<void> {
    for (const twin of twins) await this.#addTwin(tx, actor, id, twin);
    if (active || twins.length === 0) return;
    const reached = await this.ends.reach(tx, id, 'deactivate');
    await this.ends.end(
      tx,
      reached.filter(({ tie }) => tie === 'twin'),
      endOf(actor, {}),
    );
  }

  async #addTwin(
    tx: EntityManager,
    actor: ScimActor,
    recordId: string,
    { id, email }: AddressHolder,
  ): Promise<void> {
    const { orgId, origin } = actor;
    if (!(await addTwin(tx, { orgId, recordId, userId: id, address: email }))) return;
    this.#security.warn(
      { orgId, userId: id, twinOf: recordId, email },
      'a member is a twin of a record',
    );
    await this.audit.record(tx, {
      type: 'scim_twin_found',
      actorId: null,
      subjectId: id,
      orgId,
      origin,
      details: { email, twin_of: recordId, scim_token_id: actor.tokenId },
    });
  }

  async #recordTakeOver(
    tx: EntityManager,
    { orgId, tokenId, origin }: ScimActor,
    { id, email, isOrgAdmin, active }: KnownUser,
    next: NextUser,
  ): Promise<void> {
    if (isOrgAdmin) {
      this.#security.warn({ orgId, userId: id, email }, 'SCIM has taken an admin over');
    }
    await this.audit.record(tx, {
      type: 'scim_user_taken_over',
      actorId: null,
      subjectId: id,
      orgId,
      origin,
      details: {
        email,
        user_name: next.userName,
        is_org_admin: isOrgAdmin,
        active,
        scim_token_id: tokenId,
      },
    });
  }

  /**
   * Lifts the tombstones (rows that bar a sign-in) of e-mail addresses that the user newly has. If
   * an inactive user loses an address, all addresses that the user has or had get tombstones. So
   * the person cannot sign in with the lost address as a new user.
   *
   * @returns details of the audit event
   */
  async #moveTombstones(
    tx: EntityManager,
    { orgId }: ScimActor,
    current: KnownUser,
    next: NextUser,
  ): Promise<Details> {
    const { id, email, userName, externalId, scimManaged } = current;
    const before = scimManaged ? addressesIn(stateOf(current)).has : [];
    const { has } = addressesIn(next);
    const isLost =
      addressesBeyond(before, has).length > 0 || (email !== null && next.email === null);
    if (!next.active && isLost) {
      await setTombstones(tx, orgId, id, { recordId: id, byAdmin: false });
    }
    const newly = addressesBeyond(has, before);
    const gained = next.email !== null && next.email !== email ? [next.email] : [];
    const lifted = await liftTombstones(tx, orgId, id, [...newly, ...gained]);
    if (!scimManaged || !isSameName(userName, next.userName) || externalId !== next.externalId) {
      await liftIdentities(tx, orgId, id, next);
    }
    const isChanged =
      next.email !== email && (next.email === null || email === null || lifted.length > 0);
    return {
      ...(isChanged ? { email: next.email, previous_email: email } : {}),
      ...(lifted.length > 0 ? { tombstone_lifted: true } : {}),
    };
  }

  /**
   * Ends or restores the access of a user and the user's twins, if the write changes `active`. A
   * twin is a member who signed in with an e-mail address of this SCIM record.
   *
   * @returns false if nothing changed
   */
  async #applyActive(
    tx: EntityManager,
    actor: ScimActor,
    current: KnownUser,
    next: NextUser,
    details: Details,
  ): Promise<boolean> {
    const { id } = current;
    if (next.active && !current.active) {
      const revived = await this.ends.revived(tx, id);
      await this.ends.activate(tx, revived, id, (user, more) =>
        auditOf(actor, 'update', user.id, user.id === id ? details : more),
      );
      return true;
    }
    if (next.active) return false;
    const all = await this.ends.reach(tx, id, 'deactivate');
    // If the user is inactive already, only the access of twins that are still active must end.
    const reached = current.active
      ? all
      : all.filter(({ tie, withRecords }) => tie === 'twin' && withRecords.includes(id));
    await this.ends.end(tx, reached, endOf(actor, details));
    return reached.length > 0;
  }

  async #warnOfNewPlain(
    tx: EntityManager,
    actor: ScimActor,
    current: KnownUser,
    next: NextUser,
  ): Promise<void> {
    const before = new Set(addressesIn(stateOf(current)).plain);
    const plain = addressesIn(next).plain.filter((address) => !before.has(address));
    const holders = await holdersOf(tx, actor.orgId, plain);
    this.#warnOfPlain(actor, current.id, plain, holders);
  }

  /**
   * Logs a warning about each e-mail address that the record names only as data, and with which
   * another user signs in.
   */
  #warnOfPlain(
    { orgId }: ScimActor,
    userId: string,
    plain: readonly string[],
    holders: readonly AddressHolder[],
  ): void {
    for (const { id, email } of holders) {
      if (id === userId || !plain.includes(email)) continue;
      this.#security.warn(
        { orgId, userId, email, member: id },
        'a record names the address of another member among its further addresses',
      );
    }
  }
}

/**
 * Returns the state of a user in the form of {@link UserState}, to compare it with the state after
 * a write.
 */
function stateOf({ userName, attributes }: DirectoryUser) {
  return { userName, attributes: JSON.parse(attributes) as object };
}

function endOf(actor: ScimActor, details: Details): RecordEnd {
  return {
    reason: { remove: 'user deleted by SCIM', deactivate: 'user deactivated by SCIM' },
    revokedBy: 'scim',
    byAdmin: false,
    auditOf: (user, kind, more) => {
      const isNamed = Object.keys(more).length === 0;
      const about = kind === 'remove' ? { email: user.email } : isNamed ? details : {};
      return auditOf(actor, OPERATION[kind], user.id, { ...about, ...more });
    },
  };
}

const OPERATION = { remove: 'delete', deactivate: 'update' } as const satisfies Record<
  EndKind,
  string
>;

function auditOf(
  actor: ScimActor,
  operation: 'update' | 'delete',
  id: string,
  more: Details,
): AccountAudit {
  const { type, origin, details } = scimOperation(actor, operation, 'User', id, more);
  return { type, actorId: null, origin, details };
}
