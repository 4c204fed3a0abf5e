import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { AccountAudit } from '#domain/directory/account.js';
import { TombstonesRepository } from '#domain/organizations/tombstones.repository.js';
import { UserDirectory } from '#domain/directory/user-directory.service.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ENTERPRISE_URN, type DirectoryUser } from './directory-user.js';
import {
  DirectoryUsersRepository,
  type LockedDirectoryUser,
  type NextUser,
} from './directory-users.repository.js';
import { scimOperation, type ScimActor } from './scim-operation.js';

/** Derives the state of a user after a write, or throws. It runs again when another request changed the user first. */
type ComputeUser = (current: DirectoryUser) => NextUser;

/** The number of attempts to change a user without a lock while other requests change the same user. */
const MOST_TRIES = 3;

/**
 * Changes the users of an organization for its identity provider. What ends the access of a user ends it in the transaction of
 * the change, before the response: sessions, grants, codes, tokens and certificates.
 */
@Injectable()
export class UserProvisioning {
  constructor(
    private readonly tenantWork: TenantWork,
    private readonly users: DirectoryUsersRepository,
    private readonly accessRevocation: AccessRevocation,
    private readonly tombstones: TombstonesRepository,
    private readonly userDirectory: UserDirectory,
  ) {}

  /**
   * @param id the id of the new user, where a bulk request has promised it to another operation
   * @throws DomainError uniqueness
   */
  create(actor: ScimActor, user: NextUser, id?: string): Promise<DirectoryUser> {
    return this.tenantWork.bounded(actor.orgId, (tx) => this.users.insert(tx, actor, user, id));
  }

  /** @throws DomainError not_found, also for a user of another organization */
  async find(orgId: string, id: string): Promise<DirectoryUser> {
    const user = await this.tenantWork.bounded(orgId, (tx) => this.users.find(tx, orgId, id));
    if (!user) throw noUser();
    return user;
  }

  /**
   * Changes a user: in one statement where only attributes change, otherwise under the lock of the row. A write that changes
   * nothing makes no new version and no audit row.
   *
   * @param compute derives the state after the write, or throws
   * @throws DomainError not_found, uniqueness
   */
  async change(actor: ScimActor, id: string, compute: ComputeUser): Promise<DirectoryUser> {
    const changed = await this.tenantWork.bounded(actor.orgId, (manager) =>
      this.#changeAttributes(manager, actor, id, compute),
    );
    return changed ?? this.#changeUnderLock(actor, id, compute);
  }

  /**
   * Removes a user with all sessions, keys and applications.
   *
   * @param verify may refuse the removal by the state under the lock
   * @throws DomainError not_found
   */
  async remove(
    actor: ScimActor,
    id: string,
    verify: (current: DirectoryUser) => void,
  ): Promise<void> {
    await this.tenantWork.transact(actor.orgId, async (tx) => {
      const current = await this.#lock(tx, actor.orgId, id);
      verify(current);
      await this.tombstones.setForUser(tx, actor.orgId, id);
      await this.userDirectory.remove(tx, current, {
        reason: 'user deleted by SCIM',
        revokedBy: 'scim',
        audit: auditOf(actor, 'delete', id, { email: current.email }),
      });
    });
  }

  /** @returns undefined where more than attributes changes, or where other requests change the same user too often */
  async #changeAttributes(
    manager: EntityManager,
    actor: ScimActor,
    id: string,
    compute: ComputeUser,
  ): Promise<DirectoryUser | undefined> {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const current = await this.users.find(manager, actor.orgId, id);
      if (!current) throw noUser();
      const next = compute(current);
      const changesAccess = next.active !== current.active || next.email !== current.email;
      // An unchanged user is read again under the lock: another request may be undoing the same change now.
      if (changesAccess || isSame(current, next)) return undefined;
      const changed = await this.users.update(manager, actor, current, next, {});
      if (changed) return changed;
    }
    return undefined;
  }

  async #lock(tx: EntityManager, orgId: string, id: string): Promise<LockedDirectoryUser> {
    const user = await this.users.lock(tx, orgId, id);
    if (!user) throw noUser();
    return user;
  }

  async #changeUnderLock(
    actor: ScimActor,
    id: string,
    compute: ComputeUser,
  ): Promise<DirectoryUser> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.tenantWork.transact(actor.orgId, (tx) =>
          this.#changeIn(tx, actor, id, compute),
        );
      } catch (error) {
        // Another user took the address between the look-up and the change. The next attempt sees that user.
        if (tries === MOST_TRIES || violatedConstraint(error) !== 'users_email') throw error;
      }
    }
  }

  /** Changes a locked user. A new e-mail address ends the access under the old one; `active` ends or restores access. */
  async #changeIn(
    tx: EntityManager,
    actor: ScimActor,
    id: string,
    compute: ComputeUser,
  ): Promise<DirectoryUser> {
    const current = await this.#lock(tx, actor.orgId, id);
    const next = await this.#withFreeAddress(tx, actor, current, compute(current));
    if (isSame(current, next)) return current;
    const changesActive = next.active !== current.active;
    const details = await this.#moveTombstones(tx, actor, current, next);
    const changed = await this.users.update(
      tx,
      actor,
      current,
      next,
      changesActive ? false : details,
    );
    if (!changed) throw new Error('a locked user is of another version');
    if (next.email !== current.email) {
      const cause = { reason: 'e-mail changed', revokedBy: 'scim' };
      await this.accessRevocation.end(tx, current, 'email-changed', cause);
    }
    if (!changesActive) return changed;
    const audit = auditOf(actor, 'update', id, details);
    if (next.active) await this.userDirectory.activate(tx, current, audit);
    else {
      const reason = 'user deactivated by SCIM';
      await this.userDirectory.deactivate(tx, current, { reason, revokedBy: 'scim', audit });
    }
    const after = await this.users.find(tx, actor.orgId, id);
    if (!after) throw new Error('a locked user is gone');
    return after;
  }

  /** Leaves the user without an address where another user signs in with it, until a write names the address while it is free. */
  async #withFreeAddress(
    tx: EntityManager,
    { orgId }: ScimActor,
    { id, email }: DirectoryUser,
    next: NextUser,
  ): Promise<NextUser> {
    if (next.email === null || next.email === email) return next;
    const isTaken = await this.users.isAddressTaken(tx, orgId, id, next.email);
    return isTaken ? { ...next, email: null } : next;
  }

  /**
   * Lifts the tombstone of an address that the user gets, and sets one on the address that an inactive user loses, so that the
   * address stays barred.
   *
   * @returns details of the audit row where the user gets or loses the address to sign in with
   */
  async #moveTombstones(
    tx: EntityManager,
    { orgId }: ScimActor,
    { id, email }: DirectoryUser,
    next: NextUser,
  ): Promise<Readonly<Record<string, unknown>>> {
    if (next.email === email) return {};
    if (email !== null && !next.active) await this.tombstones.set(tx, orgId, email);
    const isLifted = next.email !== null && (await this.tombstones.lift(tx, orgId, next.email, id));
    if (next.email !== null && email !== null && !isLifted) return {};
    const lifted = isLifted ? { tombstone_lifted: true } : {};
    return { email: next.email, previous_email: email, ...lifted };
  }
}

function auditOf(
  actor: ScimActor,
  operation: 'update' | 'delete',
  id: string,
  more: Readonly<Record<string, unknown>>,
): AccountAudit {
  const { type, origin, details } = scimOperation(actor, operation, 'User', id, more);
  return { type, actorId: null, origin, details };
}

/** Tells whether a user is in the state that a write asks for. */
function isSame(current: DirectoryUser, next: NextUser): boolean {
  const keys = ['userName', 'externalId', 'active', 'email'] as const;
  if (keys.some((key) => current[key] !== next[key])) return false;
  return isDeepStrictEqual(written(current), JSON.parse(JSON.stringify(next.attributes)));
}

/** The attributes that clients wrote: without the manager's address and name, which are derived. */
function written({ attributes }: DirectoryUser): unknown {
  const all = JSON.parse(attributes) as Record<string, unknown>;
  const extension = all[ENTERPRISE_URN];
  const manager = isRecord(extension) ? extension['manager'] : undefined;
  if (!isRecord(extension) || !isRecord(manager)) return all;
  const { $ref: _, displayName: __, ...own } = manager;
  return { ...all, [ENTERPRISE_URN]: { ...extension, manager: own } };
}

function isRecord(raw: unknown): raw is Readonly<Record<string, unknown>> {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw);
}

/** Builds the error for a user who does not exist or belongs to another organization. */
export function noUser(): DomainError {
  return new DomainError('not_found', 'There is no such user.');
}
