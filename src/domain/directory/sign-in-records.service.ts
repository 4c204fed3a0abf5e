import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import {
  ADDRESS_OF_SEVERAL,
  DEACTIVATED,
  NO_ADDRESS,
  REMOVED_BY_SCIM,
} from '#domain/organizations/membership.js';
import { TombstonesRepository } from '#domain/organizations/tombstones.repository.js';
import { RANK } from './record-addresses.js';
import { RecordEnds } from './record-ends.service.js';
import { bindsByMail, addTwin, recordsOf, type RecordOfAddress } from './record-ties.repository.js';
import { UsersRepository, type User } from './users.repository.js';

/** The user whom an unbound identity may enter by its address, or the reason of a refusal; neither for an unknown address. */
export interface FoundRecord {
  readonly user?: User;
  readonly refusal?: string;
  /** The records that have the address, where several have it. */
  readonly records?: readonly string[];
  /** True for a record whose userName is another one. */
  readonly isByMail?: boolean;
}

/**
 * Finds the user of an identity that is bound to none, by the address that the identity provider claims. The caller has locked the
 * directory of the organization, which owns the domain of the address.
 */
@Injectable()
export class SignInRecords {
  readonly #security = new Logger('security');

  constructor(
    private readonly users: UsersRepository,
    private readonly ends: RecordEnds,
    private readonly tombstones: TombstonesRepository,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Finds the record whose userName is the address; else the member who signed in with it before; else the record that has it as its
   * primary or only `work` address. A linked record is passed over. An address of several records is nobody's.
   */
  async find(tx: EntityManager, orgId: string, identity: UpstreamIdentity): Promise<FoundRecord> {
    const records = await recordsOf(tx, orgId, identity.email);
    const named = records.find(({ rank, isPassedOver }) => rank === RANK.userName && !isPassedOver);
    if (named) return this.#enter(tx, orgId, identity, named.id, false);
    const member = await this.users.lockByEmail(tx, orgId, identity.email);
    if (member && !member.scimManaged) {
      return member.active ? { user: member } : { user: member, refusal: DEACTIVATED };
    }
    const [only] = records;
    if (!only) return {};
    if (records.length > 1) {
      return { refusal: ADDRESS_OF_SEVERAL, records: records.map(({ id }) => id) };
    }
    if (only.isPassedOver || !bindsByMail(only.rank)) return {};
    return this.#enter(tx, orgId, identity, only.id, true);
  }

  async #enter(
    tx: EntityManager,
    orgId: string,
    identity: UpstreamIdentity,
    id: string,
    isByMail: boolean,
  ): Promise<FoundRecord> {
    const user = await this.users.lock(tx, id);
    if (!user) return {};
    if (!user.active) return { user, refusal: DEACTIVATED };
    if (await this.tombstones.forbidsBinding(tx, orgId, identity, id)) {
      return { user, refusal: REMOVED_BY_SCIM };
    }
    return user.email === null ? { user, refusal: NO_ADDRESS } : { user, isByMail };
  }

  /**
   * Ties a member to the records that have the address which the provider now claims: the member is a twin of each, and ends with an
   * inactive one at once. The caller holds the row of the member.
   *
   * @returns the reason of a refusal
   */
  async tieToRecords(
    tx: EntityManager,
    user: User & { readonly orgId: string },
    { email }: UpstreamIdentity,
    origin: AuditOrigin,
  ): Promise<string | undefined> {
    const { id, orgId } = user;
    const records = await recordsOf(tx, orgId, email);
    for (const record of records) await this.#tie(tx, user, record, email, origin);
    const inactive = records.filter(({ active }) => !active).map((record) => record.id);
    if (inactive.length === 0) return undefined;
    const twin = { id, kind: 'deactivate', withRecords: inactive, tie: 'twin' } as const;
    const reason = 'deactivated with the record of the address';
    await this.ends.end(tx, [twin], {
      reason: { deactivate: reason, remove: reason },
      revokedBy: 'upstream',
      byAdmin: false,
      auditOf: (_, __, more) => ({
        type: 'scim_operation',
        actorId: null,
        origin,
        details: { operation: 'update', resource_type: 'User', resource_id: id, ...more },
      }),
    });
    return DEACTIVATED;
  }

  async #tie(
    tx: EntityManager,
    { id, orgId }: { readonly id: string; readonly orgId: string },
    record: RecordOfAddress,
    email: string,
    origin: AuditOrigin,
  ): Promise<void> {
    const tie = { orgId, recordId: record.id, userId: id, address: email };
    if (!(await addTwin(tx, tie))) return;
    const about = { orgId, userId: id, twinOf: record.id, email };
    this.#security.warn(about, 'a member is a twin of a record');
    const details = { email, twin_of: record.id };
    await this.audit.record(tx, {
      type: 'scim_twin_found',
      actorId: null,
      subjectId: id,
      orgId,
      origin,
      details,
    });
  }
}
