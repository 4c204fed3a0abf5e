import { Injectable } from '@nestjs/common';
import { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';
import {
  findGroup,
  hasGroup,
  insertGroup,
  lockGroup,
  removeGroup,
  updateGroup,
  type DirectoryGroup,
  type GroupState,
} from './groups.repository.js';
import { MembershipsRepository } from './memberships.repository.js';
import { leftOutDetails, type LeftOut, type ScimActor } from './scim-operation.js';

/**
 * A change of the members of a group, such as to add some users. No change requires that all
 * members are loaded, because a group may have 100,000.
 */
export type MembershipChange =
  | { readonly kind: 'add'; readonly ids: readonly string[] }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
  | { readonly kind: 'replace'; readonly ids: readonly string[] }
  | { readonly kind: 'clear' };

/**
 * The state that a group shall have after a write, and the changes of its members in their order.
 */
export interface NextGroup extends GroupState {
  readonly members: readonly MembershipChange[];
  /**
   * True if the write does more than add members. The write then does not fail if it names only
   * unknown members, so that its other changes are made.
   */
  readonly asksMore?: boolean;
  /**
   * True if the write removes members. A member that cannot be added then does not fail the write,
   * because the removal must happen: it ends access.
   */
  readonly endsAccess?: boolean;
  /**
   * An error that the write throws, except if the write also ends a membership, because an end of
   * access must always happen.
   */
  readonly unlessEnded?: DomainError;
  readonly leftOut?: readonly LeftOut[];
}

/**
 * Changes the groups of an organization for its identity provider. Each change runs in one
 * transaction under the lock of the group. No change loads all members of a group, because there
 * may be 100,000.
 */
@Injectable()
export class GroupProvisioning {
  constructor(
    private readonly tenantWork: TenantWork,
    private readonly memberships: MembershipsRepository,
    private readonly endings: AccessEndings,
  ) {}

  /**
   * Creates a group with its members.
   *
   * @throws DomainError uniqueness; invalid_value if none of the given members is a user of the
   *   organization, or if one is a group
   */
  create(actor: ScimActor, next: NextGroup): Promise<DirectoryGroup> {
    return this.tenantWork.transact(actor.orgId, async (tx) => {
      const made = await insertGroup(tx, actor, next);
      await this.#apply(tx, actor.orgId, made.id, next);
      return made;
    });
  }

  /**
   * Finds a group of an organization.
   *
   * @throws DomainError not_found, also for a group of another organization
   */
  async find(orgId: string, id: string): Promise<DirectoryGroup> {
    const group = await this.tenantWork.bounded(orgId, (tx) => findGroup(tx, orgId, id));
    if (!group) throw noGroup();
    return group;
  }

  /**
   * Changes a group. A write that changes nothing makes no new version and no audit event.
   *
   * @param compute returns the state after the write for the present state, which is locked, or
   *   throws
   * @throws DomainError not_found, uniqueness, invalid_value
   */
  change(
    actor: ScimActor,
    id: string,
    compute: (current: DirectoryGroup) => NextGroup,
  ): Promise<DirectoryGroup> {
    return this.#ending(actor, async (tx) => {
      const current = await this.#lock(tx, actor.orgId, id);
      const next = compute(current);
      const { moved, leftOut } = await this.#apply(tx, actor.orgId, id, next);
      if (moved === 0 && next.unlessEnded) throw next.unlessEnded;
      const isSame =
        moved === 0 &&
        next.displayName === current.displayName &&
        next.externalId === current.externalId;
      const audited = leftOutDetails([...(next.leftOut ?? []), ...leftOut]);
      return isSame ? current : updateGroup(tx, actor, id, next, audited);
    });
  }

  /**
   * Removes a group with its memberships.
   *
   * @param verify throws to refuse the removal because of the present state, which is locked, such
   *   as for a wrong `If-Match`
   * @throws DomainError not_found
   */
  async remove(
    actor: ScimActor,
    id: string,
    verify: (current: DirectoryGroup) => void,
  ): Promise<void> {
    await this.#ending(actor, async (tx) => {
      const current = await this.#lock(tx, actor.orgId, id);
      verify(current);
      await this.#removeAll(tx, id, []);
      await removeGroup(tx, actor, current);
    });
  }

  /**
   * Runs a change of a group in one transaction. If members lose access to a target, such as an AWS
   * role, their credentials end before the response. If there are many, a worker ends the rest, so
   * that the response does not wait for thousands.
   */
  async #ending<Result>(
    actor: ScimActor,
    change: (tx: EntityManager) => Promise<Result>,
  ): Promise<Result> {
    const { orgId, tokenId, origin } = actor;
    const { result, queued } = await this.tenantWork.transact(orgId, async (tx) => ({
      result: await change(tx),
      queued: await this.endings.label(tx, { scimTokenId: tokenId, requestId: origin.requestId }),
    }));
    if (queued) await this.endings.settle(queued);
    return result;
  }

  async #lock(tx: EntityManager, orgId: string, id: string): Promise<DirectoryGroup> {
    const group = await lockGroup(tx, orgId, id);
    if (!group) throw noGroup();
    return group;
  }

  /**
   * Applies changes of members in their order.
   *
   * @returns the number of memberships that began or ended, and the parts of the write that were
   *   left out
   */
  async #apply(
    tx: EntityManager,
    orgId: string,
    groupId: string,
    next: NextGroup,
  ): Promise<{ readonly moved: number; readonly leftOut: readonly LeftOut[] }> {
    const { known, leftOut } = await this.#knownUsers(tx, orgId, next);
    const add = (ids: readonly string[]) => this.memberships.add(tx, orgId, groupId, ids);
    let moved = 0;
    for (const change of next.members) {
      switch (change.kind) {
        case 'add':
          moved += await add(among(change.ids, known));
          break;
        case 'remove':
          moved += await this.memberships.remove(tx, groupId, change.ids.filter(isUuid));
          break;
        case 'replace':
          moved += await this.#removeAll(tx, groupId, among(change.ids, known));
          moved += await add(among(change.ids, known));
          break;
        case 'clear':
          moved += await this.#removeAll(tx, groupId, []);
      }
    }
    return { moved, leftOut };
  }

  /**
   * Removes all members of a group except some users, in batches.
   *
   * @returns the number of removed members
   */
  async #removeAll(
    tx: EntityManager,
    groupId: string,
    staying: readonly string[],
  ): Promise<number> {
    let total = 0;
    let last: string | undefined;
    do {
      const batch = await this.memberships.removeBatch(tx, groupId, staying, last);
      total += batch.removed;
      ({ last } = batch);
    } while (last !== undefined);
    return total;
  }

  /**
   * Locks the users that the changes add to the group, so that they are not removed meanwhile.
   * Unknown ids are ignored, because identity providers also name users who were deleted before.
   *
   * @throws DomainError invalid_value if a write names no user of the organization and asks for
   *   nothing else, or names a group
   */
  async #knownUsers(tx: EntityManager, orgId: string, next: NextGroup): Promise<KnownUsers> {
    const { members, asksMore = false, endsAccess = false } = next;
    const added = members.flatMap(idsAdded);
    const known = await this.memberships.lockUsers(tx, orgId, added.filter(isUuid));
    const isKnown = (id: string) => known.has(id.toLowerCase());
    if (!asksMore && added.length > 0 && !added.some(isKnown)) throw noMembers(added);
    const unknown = added.filter((id) => isUuid(id) && !isKnown(id));
    const namesGroup = unknown.length > 0 && (await hasGroup(tx, orgId, unknown));
    if (!namesGroup) return { known, leftOut: [] };
    if (endsAccess) return { known, leftOut: [{ name: 'members', reason: 'invalid_value' }] };
    throw new DomainError('invalid_value', 'members are users: a group cannot be in a group.');
  }
}

/**
 * The existing users that a write names. `leftOut` has the part of the write that names a group,
 * because a group cannot be a member.
 */
interface KnownUsers {
  readonly known: ReadonlySet<string>;
  readonly leftOut: readonly LeftOut[];
}

/** Returns the ids of the users that a change adds to the group. */
function idsAdded(change: MembershipChange): readonly string[] {
  return change.kind === 'add' || change.kind === 'replace' ? change.ids : [];
}

/** Returns those of the ids that belong to users of the organization, each once. */
function among(ids: readonly string[], known: ReadonlySet<string>): readonly string[] {
  return [...new Set(ids.map((id) => id.toLowerCase()))].filter((id) => known.has(id));
}

/** The most unknown ids that an error text names, and the most characters of each. */
const MOST_NAMED = 10;
const MOST_CHARACTERS = 64;

function noMembers(ids: readonly string[]): DomainError {
  const named = ids.slice(0, MOST_NAMED).map((id) => id.slice(0, MOST_CHARACTERS).toWellFormed());
  const more = ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : '';
  const detail = `members names no user of the organization: ${named.join(', ')}${more}.`;
  return new DomainError('invalid_value', detail);
}

/** Returns the error for a group that does not exist or belongs to another organization. */
export function noGroup(): DomainError {
  return new DomainError('not_found', 'There is no such group.');
}
