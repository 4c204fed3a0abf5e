import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { TombstonesRepository } from '#domain/organizations/tombstones.repository.js';
import type { AccountAudit } from './account.js';
import { UserDirectory } from './user-directory.service.js';
import { violatedConstraint } from '#platform/database/statements/faults.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ScimActor } from './scim-actor.js';
import { ENTERPRISE_URN, type ScimUser } from './directory-user.js';
import { ScimUsersRepository, type ScimUserState } from './directory-users.repository.js';

/** What a write makes of a user, and whether they may be here at all. */
export interface NextUser extends ScimUserState {
  readonly active: boolean;
}

/** Judges what a user is, and says what they become. Called anew when somebody else was faster. */
export type ComputeUser = (current: ScimUser) => NextUser;

/** How often a change is tried without a lock when others change the same user; then it waits for its turn. */
const MOST_TRIES = 3;

/**
 * Changes of users by their identity provider. Whatever ends somebody's access ends it in the transaction of the change, and
 * before the answer: sessions, grants, codes, tokens and certificates (see {@link UserDirectory}).
 */
@Injectable()
export class ScimUserChanges {
  constructor(
    private readonly work: TenantWork,
    private readonly users: ScimUsersRepository,
    private readonly revocation: AccessRevocation,
    private readonly tombstones: TombstonesRepository,
    private readonly directory: UserDirectory,
  ) {}

  /**
   * Changes a user: in one statement where nothing but attributes changes, and else under their row's lock. What changes
   * nothing is no change: there is no new version, and no audit row.
   *
   * @throws DomainError not_found, uniqueness, and whatever `compute` throws
   */
  async change(actor: ScimActor, id: string, compute: ComputeUser): Promise<ScimUser> {
    const changed = await this.work.bounded(actor.orgId, (manager) =>
      this.#changeAttributes(manager, actor, id, compute),
    );
    return changed ?? this.#changeUnderLock(actor, id, compute);
  }

  /** Undefined where more than attributes changes, or where others change the same user too often. */
  async #changeAttributes(
    manager: EntityManager,
    actor: ScimActor,
    id: string,
    compute: ComputeUser,
  ): Promise<ScimUser | undefined> {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const current = await this.users.find(manager, actor.orgId, id);
      if (!current) throw noUser();
      const next = compute(current);
      const turns = next.active !== current.active || next.email !== current.email;
      // Whether it is still so is for the lock to say: another request may be changing it back at this moment.
      if (turns || isSame(current, next)) return undefined;
      const changed = await this.users.update(manager, actor, current, next, {});
      if (changed) return changed;
    }
    return undefined;
  }

  /**
   * Removes a user and all that is theirs.
   *
   * @param judge may refuse it, by what the user is
   * @throws DomainError not_found, and whatever `judge` throws
   */
  async remove(actor: ScimActor, id: string, judge: (current: ScimUser) => void): Promise<void> {
    await this.work.transact(actor.orgId, async (tx) => {
      const current = await this.users.lock(tx, actor.orgId, id);
      if (!current) throw noUser();
      judge(current);
      await this.tombstones.setForUser(tx, actor.orgId, id);
      await this.directory.remove(tx, await this.directory.lock(tx, id), {
        reason: 'user deleted by SCIM',
        revokedBy: 'scim',
        audit: auditOf(actor, 'delete', id, { email: current.email }),
      });
    });
  }

  async #changeUnderLock(actor: ScimActor, id: string, compute: ComputeUser): Promise<ScimUser> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.work.transact(actor.orgId, (tx) =>
          this.#changeIn(tx, actor, id, compute),
        );
      } catch (error) {
        // Another user took the address between the look-up and the change: the next try sees them.
        if (tries === MOST_TRIES || violatedConstraint(error) !== 'users_email') throw error;
      }
    }
  }

  /** A change of e-mail ends what was issued under the old one; one of `active` is a de-provisioning, or its end. */
  async #changeIn(
    tx: EntityManager,
    actor: ScimActor,
    id: string,
    compute: ComputeUser,
  ): Promise<ScimUser> {
    const current = await this.users.lock(tx, actor.orgId, id);
    if (!current) throw noUser();
    const next = await this.#withFreeAddress(tx, actor, current, compute(current));
    if (isSame(current, next)) return current;
    const turns = next.active !== current.active;
    const details = await this.#moveTombstones(tx, actor, current, next);
    const changed = await this.users.update(tx, actor, current, next, turns ? false : details);
    if (!changed) throw new Error('a locked user is of another version');
    if (next.email !== current.email) {
      const cause = { reason: 'e-mail changed', revokedBy: 'scim' };
      await this.revocation.end(tx, current, 'email-changed', cause);
    }
    if (!turns) return changed;
    const audit = auditOf(actor, 'update', id, details);
    const user = await this.directory.lock(tx, id);
    if (next.active) await this.directory.activate(tx, user, audit);
    else {
      const reason = 'user deactivated by SCIM';
      await this.directory.deactivate(tx, user, { reason, revokedBy: 'scim', audit });
    }
    const after = await this.users.find(tx, actor.orgId, id);
    if (!after) throw new Error('a locked user is gone');
    return after;
  }

  /** An address that another user signs in with is not this user's: they have none until a write names it while it is free. */
  async #withFreeAddress(
    tx: EntityManager,
    { orgId }: ScimActor,
    { id, email }: ScimUser,
    next: NextUser,
  ): Promise<NextUser> {
    if (next.email === null || next.email === email) return next;
    const isTaken = await this.users.isAddressTaken(tx, orgId, id, next.email);
    return isTaken ? { ...next, email: null } : next;
  }

  /**
   * Lifts the tombstone of an address that the user gets, and sets one on the address that an inactive user loses: the person stays
   * out under it.
   *
   * @returns what the audit row says where the user gets or loses the address that they sign in with
   */
  async #moveTombstones(
    tx: EntityManager,
    { orgId }: ScimActor,
    { id, email }: ScimUser,
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
  { tokenId, origin }: ScimActor,
  operation: 'update' | 'delete',
  id: string,
  more: Readonly<Record<string, unknown>> = {},
): AccountAudit {
  const about = { operation, resource_type: 'User', resource_id: id, scim_token_id: tokenId };
  return { type: 'scim_operation', actorId: null, origin, details: { ...about, ...more } };
}

/** Whether a user is already what a client made of them. */
function isSame(current: ScimUser, next: NextUser): boolean {
  const keys = ['userName', 'externalId', 'active', 'email'] as const;
  if (keys.some((key) => current[key] !== next[key])) return false;
  return isDeepStrictEqual(written(current), JSON.parse(JSON.stringify(next.attributes)));
}

/** The attributes of a user that clients wrote: not the address and the name of their manager. */
function written({ attributes }: ScimUser): unknown {
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

/** The one answer for a user that is not there, and for one of another organization. */
export function noUser(): DomainError {
  return new DomainError('not_found', 'There is no such user.');
}
