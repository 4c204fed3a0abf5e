import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { isLostRace } from '#platform/database/statements/faults.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { DirectoryUser } from './directory-user.js';
import {
  findDirectoryUser,
  findKnownUser,
  insertUnclaimedUser,
  lockKnownUser,
  updateDirectoryUser,
  type NextUser,
} from './directory-users.repository.js';
import { addressesIn, isSame } from './record-plan.js';
import { RecordWrites } from './record-writes.service.js';
import { leftOutDetails, type ScimActor } from './scim-operation.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * A function that returns the state of a user after a write, or throws. It runs again if another
 * request changed the user first.
 */
type ComputeUser = (current: DirectoryUser) => NextUser;

/**
 * The number of attempts to change a user without a lock, if other requests change the same user at
 * the same time. After the last attempt the change takes the lock.
 */
const MOST_TRIES = 3;

/**
 * Changes the users of an organization for its identity provider. If a change ends the access of a
 * user, then sessions, grants, codes, tokens and certificates end in the same transaction. They end
 * before the response is sent.
 */
@Injectable()
export class UserProvisioning {
  constructor(
    private readonly tenantWork: TenantWork,
    private readonly organizations: OrganizationsRepository,
    private readonly writes: RecordWrites,
  ) {}

  /**
   * Creates a user, or takes over the member who signs in with an e-mail address of the user. One
   * statement is enough if the new user affects no other user, which is nearly always so. Otherwise
   * a transaction locks the directory of the organization first.
   *
   * @param id the id of the new user, if another operation of a bulk request (RFC 7644 §3.7)
   *   already refers to it
   * @throws DomainError uniqueness
   */
  async create(actor: ScimActor, user: NextUser, id?: string): Promise<DirectoryUser> {
    const made = await this.tenantWork.bounded(actor.orgId, (manager) =>
      this.#createUnclaimed(manager, actor, user, id),
    );
    if (made) return made;
    return this.tenantWork.transact(actor.orgId, async (tx) => {
      await this.organizations.lockDirectory(tx, actor.orgId);
      return this.writes.create(tx, actor, user, id);
    });
  }

  /**
   * Finds a user of an organization.
   *
   * @throws DomainError not_found, also for a user of another organization
   */
  async find(orgId: string, id: string): Promise<DirectoryUser> {
    const user = await this.tenantWork.bounded(orgId, (tx) => findDirectoryUser(tx, orgId, id));
    if (!user) throw noUser();
    return user;
  }

  /**
   * Changes a user. One statement is enough if only plain attributes change; otherwise a
   * transaction locks the directory of the organization. A write that changes nothing makes no new
   * version and no audit event. If the user is a member who signed in and whom SCIM did not create,
   * SCIM manages the member after the first change.
   *
   * @param compute returns the state after the write, or throws
   * @throws DomainError not_found, uniqueness
   */
  async change(actor: ScimActor, id: string, compute: ComputeUser): Promise<DirectoryUser> {
    const changed = await this.tenantWork.bounded(actor.orgId, (manager) =>
      this.#changeAttributes(manager, actor, id, compute),
    );
    if (changed) return changed;
    return this.tenantWork.transact(actor.orgId, async (tx) => {
      await this.organizations.lockDirectory(tx, actor.orgId);
      const user = await this.writes.change(tx, actor, id, compute);
      if (!user) throw noUser();
      return user;
    });
  }

  /**
   * Removes a user with all sessions, keys and applications, and the members who signed in with an
   * e-mail address of the user (its twins).
   *
   * @param verify throws to refuse the removal because of the present state, which is locked, such
   *   as for a wrong `If-Match`
   * @throws DomainError not_found
   */
  async remove(
    actor: ScimActor,
    id: string,
    verify: (current: DirectoryUser) => void,
  ): Promise<void> {
    await this.tenantWork.transact(actor.orgId, async (tx) => {
      await this.organizations.lockDirectory(tx, actor.orgId);
      if (!(await this.writes.remove(tx, actor, id, verify))) throw noUser();
    });
  }

  /**
   * Creates a user by one statement, if the new user affects no other user.
   *
   * @returns undefined if the new user affects another user, or if another request was faster. A
   *   transaction must then decide
   */
  async #createUnclaimed(
    manager: EntityManager,
    actor: ScimActor,
    user: NextUser,
    id: string | undefined,
  ): Promise<DirectoryUser | undefined> {
    try {
      return await insertUnclaimedUser(manager, actor, user, addressesIn(user), id);
    } catch (error) {
      if (isLostRace(error)) return undefined;
      throw error;
    }
  }

  /**
   * Changes the plain attributes of a user by one statement.
   *
   * @returns undefined if the write changes more than plain attributes or says that the user is
   *   inactive, or if other requests changed the same user during each attempt
   */
  async #changeAttributes(
    manager: EntityManager,
    actor: ScimActor,
    id: string,
    compute: ComputeUser,
  ): Promise<DirectoryUser | undefined> {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const current = await findKnownUser(manager, actor.orgId, id);
      if (!current) throw noUser();
      const next = compute(current);
      if (!current.scimManaged || next.endsAccess || isOfAccess(current, next)) return undefined;
      const changed = isSame(current, next)
        ? await this.#unchanged(manager, actor, id, compute)
        : await updateDirectoryUser(manager, actor, current, next, leftOutDetails(next.leftOut));
      if (changed) return changed;
    }
    return undefined;
  }

  /**
   * Reads a user again, with a lock on the row, after a read without a lock showed that a write
   * would change nothing. Another request may be changing the user at this moment. Returns
   * undefined if the write would change the user after all.
   */
  #unchanged(
    manager: EntityManager,
    { orgId }: ScimActor,
    id: string,
    compute: ComputeUser,
  ): Promise<DirectoryUser | undefined> {
    return withTransactionRetry(manager, async (tx) => {
      const current = await lockKnownUser(tx, orgId, id);
      if (!current) throw noUser();
      return isSame(current, compute(current)) ? current : undefined;
    });
  }
}

/**
 * Returns true if a write changes more than plain attributes: `active`, an e-mail address, or a
 * userName or externalId. These two names count, because a removed user who had the same name may
 * then sign in again.
 */
function isOfAccess(current: DirectoryUser, next: NextUser): boolean {
  const keys = ['active', 'email', 'userName', 'externalId'] as const;
  if (keys.some((key) => current[key] !== next[key])) return true;
  return !isDeepStrictEqual(emailsOf(JSON.parse(current.attributes)), emailsOf(next.attributes));
}

function emailsOf(attributes: object): unknown {
  const { emails } = attributes as { readonly emails?: unknown };
  return emails === undefined ? undefined : JSON.parse(JSON.stringify(emails));
}

/** Returns the error for a user who does not exist or belongs to another organization. */
export function noUser(): DomainError {
  return new DomainError('not_found', 'There is no such user.');
}
