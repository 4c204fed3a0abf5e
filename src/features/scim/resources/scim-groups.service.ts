import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { patchGroup } from '../patch/patch-group.js';
import { readOperations } from '../patch/patch-operations.js';
import { readGroup } from '../schema/read-resource.js';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import { ScimGroupChanges, noGroup } from '#domain/directory/group-provisioning.service.js';
import { ScimGroupsRepository, type ScimGroup } from '#domain/directory/groups.repository.js';
import { isOfOneGroup, searchGroups } from '../query/group-search.repository.js';
import type { ScimPage, ScimSearch } from '../query/search-table.repository.js';
import { isUuid } from '#domain/directory/resource-id.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { checkIfMatch } from './scim-answers.service.js';
import { entityTag } from './resource-json.js';

/** What may be done to groups. `ifMatch` is the condition under which it is to be done, if there is one. */
@Injectable()
export class ScimGroups {
  constructor(
    private readonly work: TenantWork,
    private readonly groups: ScimGroupsRepository,
    private readonly changes: ScimGroupChanges,
  ) {}

  /** @throws DomainError invalid_request, invalid_value, uniqueness */
  async create(actor: ScimActor, body: unknown): Promise<ScimGroup> {
    const { displayName, externalId = null, members } = readGroup(body);
    return this.changes.create(actor, {
      displayName,
      externalId,
      members: [{ kind: 'add', ids: members }],
    });
  }

  /** @throws DomainError not_found */
  async find({ orgId }: ScimActor, id: string): Promise<ScimGroup> {
    if (!isUuid(id)) throw noGroup();
    const group = await this.work.bounded(orgId, (tx) => this.groups.find(tx, orgId, id));
    if (!group) throw noGroup();
    return group;
  }

  search({ orgId }: ScimActor, search: ScimSearch): Promise<ScimPage<ScimGroup>> {
    const found = (tx: EntityManager) => searchGroups(tx, orgId, search);
    return isOfOneGroup(search) ? this.work.bounded(orgId, found) : this.work.costly(orgId, found);
  }

  /** RFC 7644 §3.5.1. @throws DomainError not_found, precondition_failed, invalid_request, invalid_value, uniqueness */
  async replace(actor: ScimActor, id: string, body: unknown, ifMatch?: string): Promise<ScimGroup> {
    if (!isUuid(id)) throw noGroup();
    const { displayName, externalId = null, members } = readGroup(body);
    return this.changes.change(actor, id, (current) => {
      checkIfMatch(ifMatch, entityTag(current));
      return { displayName, externalId, members: [{ kind: 'replace', ids: members }] };
    });
  }

  /** RFC 7644 §3.5.2. @throws DomainError not_found, precondition_failed, uniqueness, and what is wrong with an operation */
  async patch(actor: ScimActor, id: string, body: unknown, ifMatch?: string): Promise<ScimGroup> {
    if (!isUuid(id)) throw noGroup();
    const { set, members } = patchGroup(readOperations(body));
    return this.changes.change(actor, id, (current) => {
      checkIfMatch(ifMatch, entityTag(current));
      const { displayName, externalId } = current;
      return { displayName, externalId, ...set, members };
    });
  }

  /** RFC 7644 §3.6. @throws DomainError not_found, precondition_failed */
  async remove(actor: ScimActor, id: string, ifMatch?: string): Promise<void> {
    if (!isUuid(id)) throw noGroup();
    await this.changes.remove(actor, id, (current) => checkIfMatch(ifMatch, entityTag(current)));
  }
}
