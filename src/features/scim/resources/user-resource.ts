import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { NextUser } from '#domain/directory/provisioning/directory-users.repository.js';
import type { DirectoryUser } from '#domain/directory/provisioning/directory-user.js';
import {
  noUser,
  type UserProvisioning,
} from '#domain/directory/provisioning/user-provisioning.service.js';
import { PATIENCE_DURING_RESPONSE, TenantWork } from '#platform/database/tenants/tenant-work.js';
import {
  patchUser,
  readOperations,
  readReplacement,
  readUser,
  USER_SCHEMA,
  type Projection,
} from '../language/scim-language.js';
import { nextUser, stateAfter, storedUser } from './user-state.js';
import type { ScimQuery } from '../query/scim-query.js';
import type { ScimPage, ScimSearch } from '../query/search-table.repository.js';
import {
  isOfOneUser,
  MOST_AT_ONCE,
  readUsers,
  searchUsers,
  type ListedUser,
  type UserParts,
} from '../query/user-search.repository.js';
import { userJson } from './resource-json.js';
import type { Compute, JsonPieces, ResourceType } from './scim-resource.js';

/**
 * Reads, changes and renders users of SCIM. A large page of users is sent to the client in batches,
 * while they are read from the database.
 */
export class UserResource implements ResourceType<DirectoryUser, NextUser, ListedUser> {
  readonly schema = USER_SCHEMA;
  readonly notFound = noUser;
  readonly isOfOne = isOfOneUser;

  constructor(
    private readonly tenantWork: TenantWork,
    readonly provisioning: UserProvisioning,
    private readonly base: string,
  ) {}

  readNew(body: unknown): NextUser {
    return nextUser(readUser(body));
  }

  readReplacement(body: unknown): Compute<DirectoryUser, NextUser> {
    return (current, taken) =>
      stateAfter(current, readReplacement(body, storedUser(current), taken));
  }

  readPatch(body: unknown): Compute<DirectoryUser, NextUser> {
    const operations = readOperations(body);
    return (current, taken) =>
      stateAfter(current, patchUser(storedUser(current), operations, taken));
  }

  search(tx: EntityManager, orgId: string, search: ScimSearch): Promise<ScimPage<ListedUser>> {
    return searchUsers(tx, orgId, search);
  }

  /** Reads the next batch of users of a large page. */
  read(
    tx: EntityManager,
    orgId: string,
    ids: readonly string[],
    parts: UserParts,
  ): Promise<ListedUser[]> {
    return readUsers(tx, orgId, ids, parts);
  }

  async isShownAfterPatch(): Promise<boolean> {
    return true;
  }

  render(_orgId: string, user: DirectoryUser, projection: Projection): string {
    return userJson(user, projection, this.base);
  }

  renderList(orgId: string, listed: readonly ListedUser[], query: ScimQuery): string | JsonPieces {
    const whole = readOf(listed);
    return whole.length < listed.length
      ? this.#pieces(orgId, listed, query)
      : this.#joined(whole, query);
  }

  /**
   * Returns listed users as pieces of JSON. Users that the search did not read with all their parts
   * are read now, and a user who was deleted meanwhile is left out.
   */
  async *#pieces(orgId: string, listed: readonly ListedUser[], query: ScimQuery): JsonPieces {
    let count = 0;
    let found = listed;
    let left: readonly string[] = [];
    for (;;) {
      const users = readOf(found);
      if (users.length > 0) yield (count > 0 ? ',' : '') + this.#joined(users, query);
      count += users.length;
      left = [...found.flatMap(({ id, user }) => (user ? [] : id)), ...left];
      if (left.length === 0) return count;
      // The next statement asks for at most twice as many users as the last statement read
      // completely. So the database reads at most about as much text in vain as it returns.
      const most = Math.min(MOST_AT_ONCE, 2 * Math.max(users.length, 1));
      const next = left.slice(0, most);
      found = await this.tenantWork.costly(
        orgId,
        (tx) => this.read(tx, orgId, next, query.search),
        PATIENCE_DURING_RESPONSE,
      );
      left = left.slice(most);
    }
  }

  #joined(users: readonly DirectoryUser[], { projection }: ScimQuery): string {
    return users.map((user) => userJson(user, projection, this.base)).join(',');
  }
}

/** Returns those listed users that the search read with all their parts. */
function readOf(listed: readonly ListedUser[]): DirectoryUser[] {
  return listed.flatMap(({ user }) => user ?? []);
}
