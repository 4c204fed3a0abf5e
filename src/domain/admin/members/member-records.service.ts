import { Injectable } from '@nestjs/common';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { sumOf, type RevokedCounts } from '#domain/access-revocation/revocable.js';
import { Members, SCOPE_OF_ACT } from '#domain/directory/members.service.js';
import { RecordEnds, type EndKind } from '#domain/directory/record-ends.service.js';
import type { Admin, Member } from '#domain/directory/users.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { inBatches, partOf, type RangeOfList } from '#platform/database/tenants/batches.js';
import { listReceiversOfAdmin } from '#domain/oauth/event-receivers/receivers.repository.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { checkReader, type Reader } from '#domain/directory/api-tokens/reader.js';
import {
  listTokensOfMaker,
  type ApiToken,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import { writeKeyCursor, type ListedKeyPlace, type KeyQuery } from './key-search.js';
import {
  listHeldModels,
  searchKeys,
  type HeldModels,
  type ListedKey,
} from './key-search.repository.js';
import { MOST_FOUND } from './member-conditions.repository.js';
import { readDetails, type MemberDetails } from './member-details.repository.js';
import {
  listAdminEvents,
  readFigures,
  type AdminEvent,
  type MemberFigures,
} from './member-figures.repository.js';
import {
  PAGE_SIZE,
  writeMemberCursor,
  type MemberPlace,
  type MemberQuery,
} from './member-search.js';
import { searchMembers, type FoundMembers, type ListedMember } from './member-search.repository.js';
import { readRelated, type RelatedMember } from './related-members.repository.js';

/** The number of events on the overview page. */
const EVENTS_SHOWN = 10;

/**
 * A page of the list of members. `next` is the cursor of the following page; null on the last page.
 */
export interface MemberPage extends FoundMembers {
  readonly next: string | null;
}

/**
 * A page of the list of security keys. `next` is the cursor of the following page; null on the last
 * page.
 */
export interface KeyPage {
  readonly keys: readonly ListedKey[];
  readonly next: string | null;
}

/**
 * For each act of an admin on a member, the counts of the access that the act would end now. They
 * include the access of accounts that end together with the member. A page shows the counts before
 * the act.
 */
export type EndingAccess = Readonly<Record<keyof typeof SCOPE_OF_ACT, RevokedCounts>>;

/**
 * The counts of the access that would end if an admin changed a tie between a member and a SCIM
 * record. Such a tie says that both are, or may be, the same person.
 */
export interface EndingOfTies {
  /**
   * The counts if an admin separates the member from the SCIM record that took the member over. The
   * member then gets a new id, and the access under the old id ends. Empty if no record took the
   * member over.
   */
  readonly part: RevokedCounts;
  /**
   * The counts if an admin gives the member the e-mail address that is the member's userName.
   * Another user signs in with this address now, and the counts are of the access of that user.
   */
  readonly giveAddress: RevokedCounts;
}

/**
 * The scope of the revocation when an admin changes a tie. It is the scope for a withdrawn identity
 * provider, because that revocation also ends the access of a person and keeps the account.
 */
const MOVED = 'provider-withdrawn';

/** A member with everything that an admin sees about the member. */
export interface MemberRecord extends MemberDetails {
  readonly member: Member;
  readonly ending: EndingAccess;
  readonly endingOfTies: EndingOfTies;
  /**
   * Other accounts that belong to the same person, or to another person with the same e-mail
   * address.
   */
  readonly related: readonly RelatedMember[];
  /**
   * The valid API tokens that the member made. They end with the access of the member, and lose
   * rights if the member loses the role of admin.
   */
  readonly apiTokens: readonly ApiToken[];
  /** The event receivers that are paused once the member is no admin any more. */
  readonly eventReceivers: readonly { readonly id: string; readonly name: string }[];
}

/** Reads what the admins of an organization can see of its members. */
@Injectable()
export class MemberRecords {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly accessRevocation: AccessRevocation,
    private readonly recordEnds: RecordEnds,
  ) {}

  /**
   * Returns the numbers and the latest administrative events of an organization for the overview
   * page.
   */
  async overview({
    orgId,
  }: Admin): Promise<{ readonly figures: MemberFigures; readonly events: readonly AdminEvent[] }> {
    return this.work.costly(orgId, async (tx) => ({
      figures: await readFigures(tx, orgId),
      events: await listAdminEvents(tx, orgId, EVENTS_SHOWN),
    }));
  }

  /**
   * Returns a page of the members that match a search.
   *
   * @throws DomainError admin_required for an admin, unauthenticated for a program, if the right to
   *   read ended while the search waited for a connection
   */
  async list(reader: Reader, query: MemberQuery): Promise<MemberPage> {
    return pageOf(await this.#read(reader, searchOf(reader, query)), query);
  }

  /**
   * Returns a page of the members that match a search, and the models of all security keys in the
   * organization.
   *
   * @throws DomainError admin_required
   */
  async listWithModels(
    admin: Admin,
    query: MemberQuery,
  ): Promise<MemberPage & { readonly models: HeldModels }> {
    return this.#read(admin, async (tx) => ({
      ...pageOf(await searchMembers(tx, admin.orgId, query), query),
      models: await listHeldModels(tx, admin.orgId),
    }));
  }

  /**
   * Reads all members that match a search in batches, each after a check that the caller may still
   * read. If the query has a `limit`, at most so many members are read.
   *
   * @throws DomainError as {@link MemberRecords.list} does, and too_many for a text that more
   *   members match than a search finds
   */
  batches(reader: Reader, query: MemberQuery): Promise<AsyncGenerator<readonly ListedMember[]>> {
    return inBatches(query, async (range: RangeOfList<MemberPlace>, patience) => {
      const search = searchOf(reader, { ...query, ...range });
      const { members, isComplete } = await this.#read(reader, search, patience);
      assertComplete(isComplete);
      return partOf(members, range.limit, ({ place }) => place);
    });
  }

  /**
   * Returns a page of the security keys that match a search, of all members of the organization.
   *
   * @throws DomainError admin_required if the right to read ended while the search waited for a
   *   connection; too_many for a text that more members match than a search finds
   */
  async listKeys(admin: Admin, query: KeyQuery): Promise<KeyPage> {
    const { after, limit = PAGE_SIZE.usual } = query;
    const { rows, next } = await this.#keys(admin, query, { after, limit });
    return { keys: rows, next: next === undefined ? null : writeKeyCursor(next) };
  }

  /**
   * Reads all keys that match a search in batches, each after a check that the admin may still
   * read.
   *
   * @throws DomainError admin_required, too_many
   */
  keyBatches(admin: Admin, query: KeyQuery): Promise<AsyncGenerator<readonly ListedKey[]>> {
    return inBatches(query, (range: RangeOfList<ListedKeyPlace>, patience) =>
      this.#keys(admin, query, range, patience),
    );
  }

  async #keys(
    admin: Admin,
    query: KeyQuery,
    range: RangeOfList<ListedKeyPlace>,
    patience?: number,
  ) {
    const search = (tx: EntityManager) => searchKeys(tx, admin.orgId, { ...query, ...range });
    const { keys, isComplete } = await this.#read(admin, search, patience);
    assertComplete(isComplete);
    return partOf(keys, range.limit, ({ memberId, id }): ListedKeyPlace => ({
      memberId,
      keyId: id,
    }));
  }

  /**
   * Runs a read of a list, after a check that the caller may still read. The read counts toward the
   * limit on the database connections and time of one organization.
   *
   * @throws DomainError admin_required, unauthenticated
   */
  #read<Found>(
    reader: Reader,
    work: (tx: EntityManager) => Promise<Found>,
    patience?: number,
  ): Promise<Found> {
    const read = async (tx: EntityManager) => {
      await checkReader(tx, this.members, reader);
      return work(tx);
    };
    return this.work.costly(reader.orgId, read, patience);
  }

  /**
   * Returns everything that an admin sees about a member.
   *
   * @throws DomainError not_found
   */
  async show(admin: Admin, id: string): Promise<MemberRecord> {
    return this.work.costly(admin.orgId, async (tx) => {
      const member = await this.members.find(tx, admin, id);
      const details = await readDetails(tx, member.id);
      const scopes = Object.values(SCOPE_OF_ACT);
      const own = await this.accessRevocation.count(tx, member, scopes);
      const related = await readRelated(tx, admin.orgId, member);
      const withMember = async (act: EndKind) =>
        sumOf([own[SCOPE_OF_ACT[act]], ...(await this.#endingWith(tx, member, act))]);
      return {
        member,
        ...details,
        related,
        apiTokens: await listTokensOfMaker(tx, member.id),
        eventReceivers: await listReceiversOfAdmin(tx, member.id),
        ending: {
          deactivate: await withMember('deactivate'),
          revoke_credentials: own[SCOPE_OF_ACT.revoke_credentials],
          remove: await withMember('remove'),
        },
        endingOfTies: await this.#endingOfTies(tx, member, related),
      };
    });
  }

  /**
   * Counts the access that would end for the accounts that end together with a member. These are
   * linked records, and members who signed in with an e-mail address of the member, if the member
   * is a SCIM record.
   */
  async #endingWith(tx: EntityManager, { id, ties }: Member, act: EndKind) {
    if (ties.twins.length === 0 && ties.linkedTo.length === 0) return [];
    const reached = await this.recordEnds.reach(tx, id, act);
    const counts: RevokedCounts[] = [];
    for (const other of reached.filter((each) => each.id !== id)) {
      const scope = SCOPE_OF_ACT[other.kind];
      counts.push((await this.accessRevocation.count(tx, other, [scope]))[scope]);
    }
    return counts;
  }

  async #endingOfTies(
    tx: EntityManager,
    member: Member,
    related: readonly RelatedMember[],
  ): Promise<EndingOfTies> {
    const { takenOverAt, twinOf } = member.ties;
    const moves = member.scimManaged && takenOverAt !== null && twinOf.length === 0;
    const holder = related.find(({ relation }) => relation === 'holder');
    const countOf = async (user: { readonly id: string } | undefined) =>
      user ? (await this.accessRevocation.count(tx, user, [MOVED]))[MOVED] : {};
    return { part: await countOf(moves ? member : undefined), giveAddress: await countOf(holder) };
  }
}

function searchOf({ orgId }: Reader, query: MemberQuery) {
  return (tx: EntityManager) => searchMembers(tx, orgId, query);
}

function pageOf(
  { members, isComplete }: FoundMembers,
  { limit = PAGE_SIZE.usual }: MemberQuery,
): MemberPage {
  const { rows, next } = partOf(members, limit, ({ place }) => place);
  return { members: rows, isComplete, next: next === undefined ? null : writeMemberCursor(next) };
}

/**
 * Checks that a search found all members. A list of keys and an exported file must be of all
 * members that match, because their readers could not see that some are missing.
 *
 * @throws DomainError too_many
 */
function assertComplete(isComplete: boolean): void {
  if (isComplete) return;
  const detail = `More than ${MOST_FOUND} members may match this text. Write more of it.`;
  throw new DomainError('too_many', detail);
}
