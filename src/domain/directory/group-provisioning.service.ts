import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from './resource-id.js';
import type { ScimActor } from './scim-actor.js';
import { ScimGroupsRepository, type ScimGroup, type ScimGroupState } from './groups.repository.js';

/** A change of the members of a group. None needs the members to be loaded. */
export type MemberChange =
  | { readonly kind: 'add'; readonly ids: readonly string[] }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
  | { readonly kind: 'replace'; readonly ids: readonly string[] }
  | { readonly kind: 'clear' }
  /** `members[value eq "…"]`. */
  | { readonly kind: 'removeWhere'; readonly id: string };

/** What a write makes of a group, and of its members, one change after the other. */
export interface NextGroup extends ScimGroupState {
  readonly members: readonly MemberChange[];
}

/**
 * Changes of groups by their identity provider: each under the lock of the group, whole or not at all. No change loads a
 * member, whatever the size of the group.
 */
@Injectable()
export class ScimGroupChanges {
  constructor(
    private readonly work: TenantWork,
    private readonly groups: ScimGroupsRepository,
  ) {}

  /** @throws DomainError uniqueness; invalid_value where no member is a user of the organization, or one is a group */
  create(actor: ScimActor, { members, ...group }: NextGroup): Promise<ScimGroup> {
    return this.work.transact(actor.orgId, async (tx) => {
      const made = await this.groups.insert(tx, actor, group);
      await this.#apply(tx, actor.orgId, made.id, members);
      return made;
    });
  }

  /**
   * Changes a group. What changes nothing is no change: there is no new version, and no audit row.
   *
   * @param compute judges what the group is, and says what it becomes
   * @throws DomainError not_found, uniqueness, invalid_value, and whatever `compute` throws
   */
  change(
    actor: ScimActor,
    id: string,
    compute: (current: ScimGroup) => NextGroup,
  ): Promise<ScimGroup> {
    return this.work.transact(actor.orgId, async (tx) => {
      const current = await this.groups.lock(tx, actor.orgId, id);
      if (!current) throw noGroup();
      const { members, ...group } = compute(current);
      const moved = await this.#apply(tx, actor.orgId, id, members);
      const isSame =
        moved === 0 &&
        group.displayName === current.displayName &&
        group.externalId === current.externalId;
      return isSame ? current : this.groups.update(tx, actor, id, group);
    });
  }

  /** @throws DomainError not_found, and whatever `judge` throws */
  async remove(actor: ScimActor, id: string, judge: (current: ScimGroup) => void): Promise<void> {
    await this.work.transact(actor.orgId, async (tx) => {
      const current = await this.groups.lock(tx, actor.orgId, id);
      if (!current) throw noGroup();
      judge(current);
      await this.#take(tx, id, []);
      await this.groups.remove(tx, actor, current);
    });
  }

  /** @returns how many people came or went */
  async #apply(
    tx: EntityManager,
    orgId: string,
    groupId: string,
    changes: readonly MemberChange[],
  ): Promise<number> {
    const known = await this.#known(tx, orgId, changes.map(idsAdded));
    const add = (ids: readonly string[]) => this.groups.addMembers(tx, orgId, groupId, ids);
    let moved = 0;
    for (const change of changes) {
      switch (change.kind) {
        case 'add':
          moved += await add(among(change.ids, known));
          break;
        case 'remove':
          moved += await this.groups.removeMembers(tx, groupId, change.ids.filter(isUuid));
          break;
        case 'removeWhere':
          moved += await this.groups.removeMembers(tx, groupId, [change.id].filter(isUuid));
          break;
        case 'replace':
          moved += await this.#take(tx, groupId, among(change.ids, known));
          moved += await add(among(change.ids, known));
          break;
        case 'clear':
          moved += await this.#take(tx, groupId, []);
      }
    }
    return moved;
  }

  /** Takes all members out of a group but those who stay, some at a time. @returns how many those were */
  async #take(tx: EntityManager, groupId: string, staying: readonly string[]): Promise<number> {
    let taken = 0;
    let last: string | undefined;
    do {
      const batch = await this.groups.takeMembers(tx, groupId, staying, last);
      taken += batch.taken;
      ({ last } = batch);
    } while (last !== undefined);
    return taken;
  }

  /**
   * The people among the ids that changes put into a group, held until the transaction ends. Providers name people who were
   * deleted meanwhile: the others are taken all the same.
   *
   * @throws DomainError invalid_value where a change names none who is there, or names a group
   */
  async #known(
    tx: EntityManager,
    orgId: string,
    changes: readonly (readonly string[])[],
  ): Promise<ReadonlySet<string>> {
    const known = await this.groups.holdPeople(tx, orgId, changes.flat().filter(isUuid));
    const isKnown = (id: string) => known.has(id.toLowerCase());
    const stale = changes.find((ids) => ids.length > 0 && !ids.some(isKnown));
    if (stale) throw noMembers(stale);
    const unknown = changes.flat().filter((id) => isUuid(id) && !isKnown(id));
    if (unknown.length > 0 && (await this.groups.hasGroup(tx, orgId, unknown))) {
      throw new DomainError('invalid_value', 'members are users: a group cannot be in a group.');
    }
    return known;
  }
}

/** The ids that a change puts into the group. */
function idsAdded(change: MemberChange): readonly string[] {
  return change.kind === 'add' || change.kind === 'replace' ? change.ids : [];
}

/** The ids that are known, each once. */
function among(ids: readonly string[], known: ReadonlySet<string>): readonly string[] {
  return [...new Set(ids.map((id) => id.toLowerCase()))].filter((id) => known.has(id));
}

/** The most ids that an error names, and the most characters of each. */
const MOST_NAMED = 10;
const MOST_CHARACTERS = 64;

function noMembers(ids: readonly string[]): DomainError {
  const named = ids.slice(0, MOST_NAMED).map((id) => id.slice(0, MOST_CHARACTERS).toWellFormed());
  const more = ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : '';
  return new DomainError(
    'invalid_value',
    `members names no user that is here: ${named.join(', ')}${more}.`,
  );
}

/** The one answer for a group that is not there, and for one of another organization. */
export function noGroup(): DomainError {
  return new DomainError('not_found', 'There is no such group.');
}
