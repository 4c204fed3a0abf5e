import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TenantWork } from '#platform/database/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { invalidValue } from './attribute-value.js';
import type { MemberChange } from './patch-group.js';
import { isUuid } from './resource-id.js';
import type { ScimActor } from './scim-actor.js';
import {
  ScimGroupsRepository,
  type ScimGroup,
  type ScimGroupState,
} from './scim-groups.repository.js';

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

  /** @throws DomainError uniqueness; invalid_value for a member who is nobody in the organization */
  create(actor: ScimActor, { members, ...group }: NextGroup): Promise<ScimGroup> {
    return this.work.transact(actor.orgId, async (tx) => {
      const made = await this.groups.insert(tx, actor, group);
      await this.#apply(tx, actor.orgId, made.id, members);
      return made;
    });
  }

  /**
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
      await this.#apply(tx, actor.orgId, id, members);
      return this.groups.update(tx, actor, id, group);
    });
  }

  /** @throws DomainError not_found, and whatever `judge` throws */
  async remove(actor: ScimActor, id: string, judge: (current: ScimGroup) => void): Promise<void> {
    await this.work.transact(actor.orgId, async (tx) => {
      const current = await this.groups.lock(tx, actor.orgId, id);
      if (!current) throw noGroup();
      judge(current);
      await this.groups.remove(tx, actor, current);
    });
  }

  async #apply(
    tx: EntityManager,
    orgId: string,
    groupId: string,
    changes: readonly MemberChange[],
  ): Promise<void> {
    await this.groups.holdPeople(tx, orgId, changes.flatMap(idsAdded));
    for (const change of changes) {
      switch (change.kind) {
        case 'add':
          await this.#add(tx, orgId, groupId, idsOf(change.ids));
          break;
        case 'remove':
          await this.groups.removeMembers(tx, groupId, change.ids.filter(isUuid));
          break;
        case 'removeWhere':
          await this.groups.removeMembers(tx, groupId, [change.id].filter(isUuid));
          break;
        case 'replace':
          await this.groups.keepMembers(tx, groupId, idsOf(change.ids));
          await this.#add(tx, orgId, groupId, idsOf(change.ids));
          break;
        case 'clear':
          await this.groups.keepMembers(tx, groupId, []);
      }
    }
  }

  async #add(
    tx: EntityManager,
    orgId: string,
    groupId: string,
    ids: readonly string[],
  ): Promise<void> {
    if (ids.length === 0) return;
    if ((await this.groups.addMembers(tx, orgId, groupId, ids)) < ids.length) throw noMember();
  }
}

/** Whom a change puts into the group. */
function idsAdded(change: MemberChange): readonly string[] {
  return change.kind === 'add' || change.kind === 'replace' ? idsOf(change.ids) : [];
}

/** @throws DomainError invalid_value for an id that nobody can have */
function idsOf(ids: readonly string[]): readonly string[] {
  if (!ids.every(isUuid)) throw noMember();
  return [...new Set(ids.map((id) => id.toLowerCase()))];
}

function noMember(): DomainError {
  return invalidValue('members', 'names somebody who is no user here');
}

/** The one answer for a group that is not there, and for one of another organization. */
export function noGroup(): DomainError {
  return new DomainError('not_found', 'There is no such group.');
}
