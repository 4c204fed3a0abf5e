import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { readmitUser } from '#domain/organizations/tombstones.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Members, type MemberAct, type MemberAfterEnd } from './members.service.js';
import {
  holdersOf,
  partAddress,
  recordAwaiting,
  recordsOf,
  recordTieEvent,
  rejoinUserNames,
  releaseAddresses,
  tieToOthers,
  unlink,
  untwin,
  usableAddresses,
  withheldFrom,
} from './record-ties.repository.js';
import { UsersRepository, type Admin, type Member } from './users.repository.js';

/** An act of an admin after which a removed user can sign in again with an e-mail address. */
export interface Readmission {
  readonly admin: Admin;
  readonly email: string;
  readonly origin: AuditOrigin;
}

/** The effect of a {@link Readmission}: the address and the identities that may sign in again. */
export interface Readmitted {
  readonly email: string;
  /** The number of identities (accounts at an identity provider) that may sign in again. */
  readonly identities: number;
  /**
   * The id of the user who gets the e-mail address: the SCIM record of the user names it, and the
   * user had no address to sign in with. Null if there is no such user.
   */
  readonly givenTo: string | null;
}

/**
 * A member after an admin separated the member from SCIM records, because they are not the same
 * person.
 */
export interface PartedMember extends MemberAfterEnd {
  /** The ids of the SCIM records from which the member was separated. */
  readonly partedFrom: readonly string[];
}

/**
 * The user of a SCIM record, who can now sign in with an e-mail address with which another user
 * signed in before.
 */
export interface GivenAddress extends MemberAfterEnd {
  /** The id of the user who signed in with the e-mail address before; null if there was none. */
  readonly takenFrom: string | null;
}

/**
 * The acts of admins on ties and on tombstones. A tie connects a member to a SCIM record that is,
 * or may be, the same person. A tombstone keeps a removed user from signing in again with the same
 * e-mail address. Each act is a transaction that first locks the directory of the organization (its
 * row in `directory_locks`), so that such acts happen one after another.
 */
@Injectable()
export class MemberTies {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly users: UsersRepository,
    private readonly organizations: OrganizationsRepository,
    private readonly accessRevocation: AccessRevocation,
  ) {}

  /**
   * Lets people sign in again with the e-mail address of a removed user, and with the identities
   * that were removed with the user.
   *
   * @throws DomainError not_found for an address that may sign in already, admin_required
   */
  readmit({ admin, email, origin }: Readmission): Promise<Readmitted> {
    const { orgId } = admin;
    return this.work.transact(orgId, async (tx) => {
      await this.organizations.lockDirectory(tx, orgId);
      const awaiting = await recordAwaiting(tx, orgId, email);
      await this.users.lockMembers(tx, orgId, [admin.id, ...(awaiting ? [awaiting] : [])]);
      await this.members.holdAdmin(tx, admin);
      const { addresses, identities } = await readmitUser(tx, orgId, email);
      if (addresses + identities === 0) {
        throw new DomainError('not_found', 'Your organization has not barred this address.');
      }
      if (awaiting) await this.users.giveEmail(tx, awaiting, email);
      const givenTo = awaiting ?? null;
      await this.#record(tx, 'member_readmitted', { admin, origin }, givenTo, {
        email,
        identities,
        given_to: givenTo,
      });
      return { email, identities, givenTo };
    });
  }

  /**
   * Separates two users that were connected because they have the same e-mail address. They are a
   * member and the SCIM record with whose address the member signed in, a member and the record
   * that took the member over, or two linked records. From then on the user of the record cannot
   * sign in with the address.
   *
   * @throws DomainError admin_required, not_found, own_account, nothing_to_part
   */
  part(act: MemberAct): Promise<PartedMember> {
    const { orgId } = act.admin;
    return this.work.transact(orgId, async (tx) => {
      await this.organizations.lockDirectory(tx, orgId);
      const found = await this.members.find(tx, act.admin, act.memberId);
      const { id, email, ties } = found;
      const records = email === null ? [] : await recordsOf(tx, orgId, email);
      const others = records.map((record) => record.id).filter((each) => each !== id);
      const tied = [...ties.twinOf, ...ties.linkedTo];
      const member = await this.members.lockForAct(tx, act, tied, others);
      if (ties.twinOf.length > 0) {
        const partedFrom = await untwin(tx, id);
        if (email !== null) await partAddress(tx, partedFrom, email);
        await rejoinUserNames(tx, orgId, id);
        return this.#parted(tx, act, member, id, { partedFrom, ended: {} });
      }
      if (ties.takenOverAt !== null && member.scimManaged) {
        return this.#moveOut(tx, act, member, others);
      }
      if (ties.linkedTo.length > 0) {
        const partedFrom = await unlink(tx, id);
        return this.#parted(tx, act, member, id, { partedFrom, ended: {} });
      }
      throw new DomainError('nothing_to_part', 'This member is tied to no other account.');
    });
  }

  /**
   * Gives the user of a SCIM record the right to sign in with the e-mail address that is the
   * userName of the record. Until now another user has signed in with this address. So the
   * sessions, certificates and bound identities of that user end.
   *
   * @throws DomainError admin_required, not_found, own_account, nothing_withheld
   */
  giveAddress(act: MemberAct): Promise<GivenAddress> {
    const { orgId } = act.admin;
    return this.work.transact(orgId, async (tx) => {
      await this.organizations.lockDirectory(tx, orgId);
      const { id } = await this.members.find(tx, act.admin, act.memberId);
      const address = await withheldFrom(tx, id);
      const [holder] = address === undefined ? [] : await holdersOf(tx, orgId, [address]);
      const member = await this.members.lockForAct(tx, act, holder ? [holder.id] : []);
      if (address === undefined) {
        throw new DomainError('nothing_withheld', 'No address is withheld from this member.');
      }
      const cause = { reason: 'the address went to another record', revokedBy: act.admin.id };
      let ended: RevokedCounts = {};
      if (holder && holder.id !== id) {
        await this.users.clearEmail(tx, holder.id);
        ended = await this.accessRevocation.end(tx, [holder], 'provider-withdrawn', cause);
        await this.#unbind(tx, act, holder.id);
        await this.users.copyDemandForPass(tx, holder.id, id);
      }
      await releaseAddresses(tx, id);
      await readmitUser(tx, orgId, address);
      if (member.email !== null && member.email !== address) {
        await this.accessRevocation.end(tx, [member], 'email-changed', cause);
      }
      await this.users.giveEmail(tx, id, address);
      const takenFrom = holder?.id ?? null;
      const details = { email: address, taken_from: takenFrom, ...ended };
      await this.#record(tx, 'member_address_given', act, id, details);
      return { member: await this.members.find(tx, act.admin, id), ended, takenFrom };
    });
  }

  /**
   * Separates a member from the SCIM record that took the member over: the member gets a new id,
   * and the record keeps the old one. All access under the old id ends.
   *
   * @param twinOf the other records that have the address of the member, who becomes their twin
   */
  async #moveOut(
    tx: EntityManager,
    act: MemberAct,
    member: Member,
    twinOf: readonly string[],
  ): Promise<PartedMember> {
    const { id, email } = member;
    const { orgId } = act.admin;
    const cause = { reason: 'parted from a record by an admin', revokedBy: act.admin.id };
    const ended = await this.accessRevocation.end(tx, [member], 'provider-withdrawn', cause);
    const newId = newUuid();
    await this.users.movePerson(tx, id, newId);
    await rejoinUserNames(tx, orgId, newId);
    if (email !== null) {
      await partAddress(tx, [id], email);
      await tieToOthers(tx, id, twinOf, { orgId, userId: newId, address: email });
    }
    for (const address of await usableAddresses(tx, id)) {
      const holders = await holdersOf(tx, orgId, [address]);
      if (holders.length > 0) continue;
      await this.users.giveEmail(tx, id, address);
      break;
    }
    const more = twinOf.length > 0 ? { twin_of: twinOf } : {};
    return this.#parted(tx, act, member, newId, { partedFrom: [id], ended }, more);
  }

  async #parted(
    tx: EntityManager,
    act: MemberAct,
    { email }: Member,
    personId: string,
    { partedFrom, ended }: Pick<PartedMember, 'partedFrom' | 'ended'>,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<PartedMember> {
    const details = { email, parted_from: partedFrom, ...more, ...ended };
    await this.#record(tx, 'member_parted', act, personId, details);
    return { member: await this.members.find(tx, act.admin, personId), ended, partedFrom };
  }

  /** Ends the bindings of a user to identities, with an audit event for each of them. */
  async #unbind(tx: EntityManager, act: MemberAct, userId: string): Promise<void> {
    for (const { issuer, tenant } of await this.users.unbind(tx, userId)) {
      const details = { issuer, tenant, access_ended: true };
      await this.#record(tx, 'identity_unbound', act, userId, details);
    }
  }

  #record(
    tx: EntityManager,
    type: 'member_readmitted' | 'member_parted' | 'member_address_given' | 'identity_unbound',
    { admin, origin }: Pick<MemberAct, 'admin' | 'origin'>,
    subjectId: string | null,
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return recordTieEvent(tx, {
      type,
      actorId: admin.id,
      subjectId,
      orgId: admin.orgId,
      origin,
      details,
    });
  }
}
