import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  noGroup,
  type GroupProvisioning,
  type NextGroup,
} from '#domain/directory/provisioning/group-provisioning.service.js';
import type { DirectoryGroup } from '#domain/directory/provisioning/groups.repository.js';
import type {
  GroupMember,
  MembershipsRepository,
} from '#domain/directory/provisioning/memberships.repository.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import {
  domainErrorOf,
  GROUP_SCHEMA,
  patchGroup,
  readGroup,
  readGroupReplacement,
  readOperations,
  type GroupPatch,
  type Projection,
  type ReplacedGroup,
} from '../language/scim-language.js';
import { leftOutOf } from './user-state.js';
import { isOfOneGroup, searchGroups } from '../query/group-search.repository.js';
import type { ScimQuery } from '../query/scim-query.js';
import type { ScimPage, ScimSearch } from '../query/search-table.repository.js';
import { groupHead, memberRenderer } from './resource-json.js';
import type { Compute, JsonPieces, ResourceType } from './scim-resource.js';

/** The number of members that one statement reads for a response. */
const BATCH = 2000;

/** The largest number of members with which the response to a PATCH still shows the group. */
const MOST_SHOWN = 200;

/**
 * Reads, changes and renders groups of SCIM. The members of a group are sent to the client in
 * batches, while they are read from the database.
 */
export class GroupResource implements ResourceType<DirectoryGroup, NextGroup, DirectoryGroup> {
  readonly schema = GROUP_SCHEMA;
  readonly notFound = noGroup;
  readonly isOfOne = isOfOneGroup;

  constructor(
    private readonly tenantWork: TenantWork,
    readonly provisioning: GroupProvisioning,
    private readonly memberships: MembershipsRepository,
    private readonly base: string,
  ) {}

  readNew(body: unknown): NextGroup {
    const { displayName, externalId = null, members } = readGroup(body);
    return { displayName, externalId, members: [{ kind: 'add', ids: members }] };
  }

  readReplacement(body: unknown): Compute<DirectoryGroup, NextGroup> {
    const read = (taken?: DomainError) => readGroupReplacement(body, taken);
    const first = read();
    return (current, taken) => replacedGroup(current, taken ? read(taken) : first);
  }

  readPatch(body: unknown): Compute<DirectoryGroup, NextGroup> {
    const operations = readOperations(body);
    const first = patchGroup(operations);
    return (current, taken) => patchedGroup(current, taken ? patchGroup(operations, taken) : first);
  }

  search(tx: EntityManager, orgId: string, search: ScimSearch): Promise<ScimPage<DirectoryGroup>> {
    return searchGroups(tx, orgId, search);
  }

  isShownAfterPatch(orgId: string, { id }: DirectoryGroup): Promise<boolean> {
    return this.tenantWork.bounded(orgId, (tx) => this.memberships.hasAtMost(tx, id, MOST_SHOWN));
  }

  render(orgId: string, group: DirectoryGroup, projection: Projection): JsonPieces {
    return this.#pieces(orgId, [group], projection);
  }

  renderList(
    orgId: string,
    groups: readonly DirectoryGroup[],
    { projection }: ScimQuery,
  ): JsonPieces {
    return this.#pieces(orgId, groups, projection);
  }

  async *#pieces(
    orgId: string,
    groups: readonly DirectoryGroup[],
    projection: Projection,
  ): JsonPieces {
    const memberJson = memberRenderer(projection, this.base);
    for (const [index, group] of groups.entries()) {
      yield `${index === 0 ? '' : ','}${groupHead(group, projection, this.base)}`;
      if (projection.needsMembers) yield* this.#membersOf(orgId, group, memberJson);
      yield '}';
    }
    return groups.length;
  }

  /** Returns `,"members":[…]` in pieces, or nothing for a group without members. */
  async *#membersOf(
    orgId: string,
    { id }: DirectoryGroup,
    memberJson: (member: GroupMember) => string,
  ): AsyncGenerator<string, void> {
    let last: GroupMember | undefined;
    let isFirst = true;
    do {
      const after = last?.userId;
      const batch: readonly GroupMember[] = await this.tenantWork.costly(
        orgId,
        (tx) => this.memberships.list(tx, id, after, BATCH),
        PATIENCE_DURING_RESPONSE,
      );
      if (batch.length > 0)
        yield (isFirst ? ',"members":[' : ',') + batch.map(memberJson).join(',');
      isFirst &&= batch.length === 0;
      last = batch.length < BATCH ? undefined : batch.at(-1);
    } while (last);
    if (!isFirst) yield ']';
  }
}

/**
 * Returns the state of a group after a PATCH: its attributes, the changes of its members, and the
 * parts that were left out.
 */
function patchedGroup(
  { displayName, externalId }: DirectoryGroup,
  { set, members, endsAccess, leftOut }: GroupPatch,
): NextGroup {
  const asksMore = endsAccess || Object.keys(set).length > 0;
  const parts = leftOut.map(leftOutOf);
  return { displayName, externalId, ...set, members, asksMore, endsAccess, leftOut: parts };
}

/**
 * Returns the state of a group after a PUT, which replaces the members and the attributes of the
 * group. If the name or the `externalId` in the body cannot be applied, the group keeps its present
 * name or `externalId`.
 */
function replacedGroup(current: DirectoryGroup, group: ReplacedGroup): NextGroup {
  const { members, leftOut } = group;
  const isKept = leftOut.some(({ name }) => name === 'externalId');
  const [fault] = leftOut;
  return {
    displayName: group.displayName ?? current.displayName,
    externalId: (isKept ? current.externalId : group.externalId) ?? null,
    members: [{ kind: 'replace', ids: members }],
    ...(fault ? { unlessEnded: domainErrorOf(fault.error) } : {}),
    leftOut: leftOut.map(leftOutOf),
  };
}
