import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { patchUser } from '../patch/patch-user.js';
import { readOperations } from '../patch/patch-operations.js';
import { readUser } from '../schema/read-resource.js';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import type { ScimPage, ScimSearch } from '../query/search-table.repository.js';
import { ScimUserChanges, noUser } from '#domain/directory/user-provisioning.service.js';
import type { ScimUser } from '#domain/directory/directory-user.js';
import { ScimUserListsRepository, type ListedUser } from '../query/user-search.repository.js';
import { ScimUsersRepository } from '#domain/directory/directory-users.repository.js';
import { nextUser, stateAfter, storedUser } from '../patch/user-state.js';
import { isUuid } from '#domain/directory/resource-id.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { checkIfMatch } from './scim-answers.service.js';
import { entityTag } from './resource-json.js';

/** What may be done to users. `ifMatch` is the condition under which it is to be done, if there is one. */
@Injectable()
export class ScimUsers {
  constructor(
    private readonly work: TenantWork,
    private readonly users: ScimUsersRepository,
    private readonly lists: ScimUserListsRepository,
    private readonly changes: ScimUserChanges,
  ) {}

  /**
   * @param id which they are to have, where others were told it already
   * @throws DomainError invalid_request, invalid_value, uniqueness
   */
  async create(actor: ScimActor, body: unknown, id?: string): Promise<ScimUser> {
    const user = nextUser(readUser(body, 'create'));
    return this.work.bounded(actor.orgId, (tx) => this.users.insert(tx, actor, user, id));
  }

  /** @throws DomainError not_found */
  async find({ orgId }: ScimActor, id: string): Promise<ScimUser> {
    if (!isUuid(id)) throw noUser();
    const user = await this.work.bounded(orgId, (tx) => this.users.find(tx, orgId, id));
    if (!user) throw noUser();
    return user;
  }

  search({ orgId }: ScimActor, search: ScimSearch): Promise<ScimPage<ListedUser>> {
    const found = (tx: EntityManager) => this.lists.search(tx, orgId, search);
    return this.lists.isOfOne(search)
      ? this.work.bounded(orgId, found)
      : this.work.costly(orgId, found);
  }

  /** RFC 7644 §3.5.1. @throws DomainError not_found, precondition_failed, invalid_request, invalid_value, uniqueness */
  async replace(actor: ScimActor, id: string, body: unknown, ifMatch?: string): Promise<ScimUser> {
    if (!isUuid(id)) throw noUser();
    return this.changes.change(actor, id, (current) => {
      checkIfMatch(ifMatch, entityTag(current));
      const next = readUser(body, 'replace', storedUser(current));
      return stateAfter(current, next, [{ op: 'replace', path: undefined, value: body }]);
    });
  }

  /** RFC 7644 §3.5.2. @throws DomainError not_found, precondition_failed, uniqueness, and what is wrong with an operation */
  async patch(actor: ScimActor, id: string, body: unknown, ifMatch?: string): Promise<ScimUser> {
    if (!isUuid(id)) throw noUser();
    const operations = readOperations(body);
    return this.changes.change(actor, id, (current) => {
      checkIfMatch(ifMatch, entityTag(current));
      return stateAfter(current, patchUser(storedUser(current), operations), operations);
    });
  }

  /** RFC 7644 §3.6. @throws DomainError not_found, precondition_failed */
  async remove(actor: ScimActor, id: string, ifMatch?: string): Promise<void> {
    if (!isUuid(id)) throw noUser();
    await this.changes.remove(actor, id, (current) => checkIfMatch(ifMatch, entityTag(current)));
  }
}
