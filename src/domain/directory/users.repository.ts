import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';

/** A user, with the facts that sign-ins and acts on the account need. */
export interface User {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly active: boolean;
  readonly scimManaged: boolean;
}

/** The ties of a member to other members who are, or may be, the same person. */
export interface TiesOfMember {
  /**
   * The ids of the SCIM records that are about the same person as this member. The member signed in
   * with an e-mail address of each record, and is called its twin.
   */
  readonly twinOf: readonly string[];
  /**
   * The ids of the members who signed in with an e-mail address of this SCIM record (its twins).
   * They lose access if the record does.
   */
  readonly twins: readonly string[];
  /**
   * The ids of the SCIM records that are linked to the member: if one loses access, the other is
   * deactivated.
   */
  readonly linkedTo: readonly string[];
  /**
   * The time at which a SCIM record took over the member, who had signed in before; null if none
   * did.
   */
  readonly takenOverAt: Date | null;
  /** The userName of a linked record, if another user signs in with it; otherwise null. */
  readonly withheldAddress: string | null;
  /**
   * An e-mail address that several SCIM records have, none of them as its userName. No user can
   * sign in with it, because the right record is not clear.
   */
  readonly sharedAddress: string | null;
}

/**
 * The SQL condition that several records have the e-mail address of a row `a` of
 * `record_addresses`, and none has it as its userName.
 */
export const IS_SHARED = fragment`a.rank IS NOT NULL AND NOT a.parted
  AND EXISTS (SELECT FROM record_addresses b WHERE b.org_id = a.org_id AND b.address = a.address
              AND b.user_id <> a.user_id AND b.rank IS NOT NULL AND NOT b.parted)
  AND NOT EXISTS (SELECT FROM record_addresses n WHERE n.org_id = a.org_id AND n.address = a.address AND n.rank = 0)`;

/** The columns of {@link TiesOfMember} for a user `u`. */
export const TIES = fragment`
  ARRAY(SELECT t.record_id FROM record_ties t WHERE t.user_id = u.id AND t.kind = 'twin' ORDER BY 1) AS twin_of,
  ARRAY(SELECT t.user_id FROM record_ties t WHERE t.record_id = u.id AND t.kind = 'twin' ORDER BY 1) AS twins,
  ARRAY(SELECT t.record_id FROM record_ties t WHERE t.user_id = u.id AND t.kind = 'link'
        UNION SELECT t.user_id FROM record_ties t WHERE t.record_id = u.id AND t.kind = 'link' ORDER BY 1) AS linked_to,
  u.taken_over_at,
  (SELECT min(a.address) FROM record_addresses a
   WHERE a.user_id = u.id AND a.withheld AND a.rank IS NOT NULL) AS withheld_address,
  (SELECT min(a.address) FROM record_addresses a WHERE a.user_id = u.id AND ${IS_SHARED}) AS shared_address`;

/** A row with the columns of {@link TIES}. */
export interface TiesRow {
  twin_of: string[];
  twins: string[];
  linked_to: string[];
  taken_over_at: Date | null;
  withheld_address: string | null;
  shared_address: string | null;
}

/**
 * Returns the SQL of the userName by which a user without a userName is in the unique index: the id
 * with a blank before it. A SCIM client may give a record the id as userName, but no userName
 * begins with a blank.
 */
export function nameOutOfUse(id: SqlFragment): SqlFragment {
  return fragment`' ' || ${id}::text`;
}

/** Makes a {@link TiesOfMember} from a row with the columns of {@link TIES}. */
export function tiesOfRow(row: TiesRow): TiesOfMember {
  return {
    twinOf: row.twin_of,
    twins: row.twins,
    linkedTo: row.linked_to,
    takenOverAt: row.taken_over_at,
    withheldAddress: row.withheld_address,
    sharedAddress: row.shared_address,
  };
}

/** A user as the admins of the organization see the user. */
export interface Member extends Omit<User, 'orgId'> {
  /** The number of security keys that the member has enrolled. */
  readonly keys: number;
  readonly createdAt: Date;
  readonly ties: TiesOfMember;
  /**
   * A text that changes with the account, the role, the state and the keys of the member, but not
   * with a login. A page sends the text back with an act of the admin. If the text has changed
   * since, the act is refused, because the admin saw an old state.
   */
  readonly revision: string;
}

/** An admin who acts on members of the own organization. */
export interface Admin {
  readonly id: string;
  readonly orgId: string;
  /** The session in which the admin acts. A security key has verified it. */
  readonly sessionId: string;
}

/** The parts of the name of a user, as an identity provider sends them. */
export interface UpstreamName {
  readonly name: string | null;
  readonly givenName?: string;
  readonly familyName?: string;
}

/** An identity of an identity provider that is bound to a user. */
export interface BoundIdentity {
  readonly issuer: string;
  /** The tenant, if the issuer serves many tenants; otherwise ''. */
  readonly tenant: string;
  readonly subject: string;
}

/** The values of a user to create, as the identity provider states them. */
export interface NewUser extends UpstreamName {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string;
}

interface UserRow {
  id: string;
  org_id: string | null;
  email: string | null;
  name: string | null;
  is_org_admin: boolean;
  active: boolean;
  scim_managed: boolean;
}

interface MemberRow extends UserRow, TiesRow {
  created_at: Date;
  version: string;
  key_ids: string[];
}

/** Stores users, the identities that are bound to them, and the role of admin. */
@Injectable()
export class UsersRepository {
  /**
   * Finds the user to which an identity of an identity provider is bound; undefined if there is
   * none.
   */
  async findByIdentity(
    tx: EntityManager,
    issuer: string,
    subject: string,
  ): Promise<User | undefined> {
    const [row] = await sql<UserRow>(tx)`
      SELECT u.id, u.org_id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed
      FROM identities i JOIN users u ON u.id = i.user_id
      WHERE i.issuer = ${issuer} AND i.subject = ${subject}`;
    return row && user(row);
  }

  /**
   * Finds the member of an organization with an e-mail address, and locks the row until the
   * transaction ends. Returns undefined if there is none.
   */
  async lockByEmail(tx: EntityManager, orgId: string, email: string): Promise<User | undefined> {
    const [row] = await sql<UserRow>(tx)`
      SELECT u.id, u.org_id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed
      FROM users u
      WHERE u.org_id = ${orgId} AND u.email = ${email}
      FOR UPDATE OF u`;
    return row && user(row);
  }

  /**
   * Finds a user and locks the row until the transaction ends; undefined if there is none. Every
   * transaction that changes or removes the user, or issues a credential to the user, waits.
   */
  async lock(tx: EntityManager, id: string): Promise<User | undefined> {
    const [row] = await sql<UserRow>(tx)`
      SELECT u.id, u.org_id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed
      FROM users u
      WHERE u.id = ${id}
      FOR UPDATE OF u`;
    return row && user(row);
  }

  /**
   * Locks members of one organization until the transaction ends, in the order of their ids. If two
   * admins act on each other at once, both lock the same rows in the same order. So the second act
   * sees the change of the first.
   */
  async lockMembers(tx: EntityManager, orgId: string, ids: readonly string[]): Promise<void> {
    await sql(tx)`
      SELECT id FROM users WHERE id = ANY (${ids}::uuid[]) AND org_id = ${orgId} ORDER BY id FOR UPDATE`;
  }

  /** Finds a member of an organization; undefined for a user of another organization. */
  async findMember(tx: EntityManager, orgId: string, id: string): Promise<Member | undefined> {
    const [row] = await sql<MemberRow>(tx)`
      SELECT u.id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed, u.created_at, u.version,
             ARRAY(SELECT k.id FROM authenticators k WHERE k.user_id = u.id ORDER BY k.id) AS key_ids, ${TIES}
      FROM users u
      WHERE u.id = ${id} AND u.org_id = ${orgId}`;
    return row && member(row);
  }

  /** Returns true if a user has an enrolled key at the time of this statement. */
  async hasKey(tx: EntityManager, userId: string): Promise<boolean> {
    const found = await sql<{ id: string }>(tx)`
      SELECT id FROM authenticators WHERE user_id = ${userId} LIMIT 1`;
    return found.length === 1;
  }

  /**
   * Returns true for an active admin of the organization whose session has not ended, if a security
   * key verified the session.
   */
  async isActingAdmin(tx: EntityManager, { id, orgId, sessionId }: Admin): Promise<boolean> {
    const found = await sql<{ id: string }>(tx)`
      SELECT u.id FROM users u JOIN sessions s ON s.user_id = u.id
      WHERE u.id = ${id} AND u.org_id = ${orgId} AND is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active)
        AND s.id = ${sessionId} AND s.level = 'verified' AND s.expires_at > now()`;
    return found.length === 1;
  }

  /**
   * Checks the same as `isActingAdmin`, and keeps the result true until the transaction ends. For
   * that it locks the row of the user and then the row of the session. There are two statements, so
   * that each condition is read after its lock.
   */
  async lockAdmin(tx: EntityManager, { id, orgId, sessionId }: Admin): Promise<boolean> {
    const admins = await sql<{ id: string }>(tx)`
      SELECT id FROM users
      WHERE id = ${id} AND org_id = ${orgId} AND is_acting_admin(org_id, email, is_org_admin, active)
      FOR SHARE`;
    if (admins.length === 0) return false;
    return this.#lockVerified(tx, id, sessionId);
  }

  /**
   * Returns true for an active user whose session has not ended, if a security key verified the
   * session, and keeps that true until the transaction ends. It locks the rows as `lockAdmin` does.
   */
  async lockSession(
    tx: EntityManager,
    { id, sessionId }: Pick<Admin, 'id' | 'sessionId'>,
  ): Promise<boolean> {
    const users = await sql<{ id: string }>(tx)`
      SELECT id FROM users WHERE id = ${id} AND active FOR SHARE`;
    if (users.length === 0) return false;
    return this.#lockVerified(tx, id, sessionId);
  }

  async #lockVerified(tx: EntityManager, id: string, sessionId: string): Promise<boolean> {
    const sessions = await sql<{ id: string }>(tx)`
      SELECT id FROM sessions
      WHERE id = ${sessionId} AND user_id = ${id} AND level = 'verified' AND expires_at > now()
      FOR SHARE`;
    return sessions.length === 1;
  }

  /** Makes a member an admin, or takes the role away. Returns false if nothing changes. */
  async setAdmin(
    tx: EntityManager,
    { id, orgId }: { readonly id: string; readonly orgId: string },
    isOrgAdmin: boolean,
  ): Promise<boolean> {
    const changed = await sql<{ id: string }>(tx)`
      UPDATE users SET is_org_admin = ${isOrgAdmin}
      WHERE id = ${id} AND org_id = ${orgId} AND is_org_admin <> ${isOrgAdmin}
      RETURNING id`;
    return changed.length === 1;
  }

  /**
   * Adds a user. Returns false if another user of the organization has the e-mail address or
   * userName. For a user without an organization, it returns false if another user without one has
   * it.
   */
  async create(tx: EntityManager, created: NewUser): Promise<boolean> {
    const made = await sql<{ id: string }>(tx)`
      INSERT INTO users (id, org_id, email, name, given_name, family_name)
      VALUES (${created.id}, ${created.orgId}, ${created.email}, ${created.name}, ${created.givenName ?? null},
              ${created.familyName ?? null})
      ON CONFLICT DO NOTHING
      RETURNING id`;
    return made.length === 1;
  }

  /**
   * Adds a user without an organization, or changes the name of the one who has the e-mail address
   * already. Returns the id of the user in both cases.
   */
  async ensureOutsider(
    tx: EntityManager,
    { id, email, name }: Pick<NewUser, 'id' | 'email' | 'name'>,
  ): Promise<string> {
    const [row] = await sql<{ id: string }>(tx)`
      INSERT INTO users (id, email, name) VALUES (${id}, ${email}, ${name})
      ON CONFLICT ON CONSTRAINT users_email DO UPDATE SET name = EXCLUDED.name
      RETURNING id`;
    if (!row) throw new Error('INSERT returned no row');
    return row.id;
  }

  /**
   * Binds an identity (an account at an identity provider) to a user. Returns false if the identity
   * is bound already, or if the user has an identity of the same provider and tenant. If
   * `isFurther` is false, it also returns false for a user who has any identity. The caller has
   * locked the row of the user, so that if two identities have one e-mail address, the second sees
   * the first.
   */
  async bindIdentity(
    tx: EntityManager,
    userId: string,
    { issuer, tenant, subject }: BoundIdentity,
    isFurther = false,
  ): Promise<boolean> {
    const bound = await sql<{ user_id: string }>(tx)`
      INSERT INTO identities (issuer, tenant, subject, user_id)
      SELECT ${issuer}::text, ${tenant}::text, ${subject}::text, ${userId}::uuid
      WHERE NOT EXISTS (SELECT 1 FROM identities
                        WHERE user_id = ${userId}
                          AND (NOT ${isFurther}::boolean OR (issuer, tenant) = (${issuer}::text, ${tenant}::text)))
      ON CONFLICT (issuer, subject) DO NOTHING
      RETURNING user_id`;
    return bound.length === 1;
  }

  /** Returns true if a user has a bound identity. */
  async isBound(tx: EntityManager, userId: string): Promise<boolean> {
    const found = await sql<{ user_id: string }>(tx)`
      SELECT user_id FROM identities WHERE user_id = ${userId} LIMIT 1`;
    return found.length === 1;
  }

  /**
   * Stores the tenant of a bound identity, because it can change. At Google, for example, the
   * tenant changes if the user moves to another domain. The caller has locked the row of the user.
   */
  async updateTenant(tx: EntityManager, { issuer, tenant, subject }: BoundIdentity): Promise<void> {
    await sql(tx)`
      UPDATE identities SET tenant = ${tenant}
      WHERE issuer = ${issuer} AND subject = ${subject} AND tenant <> ${tenant}`;
  }

  /**
   * Stores the parts of a name that an identity provider sends. The name of a user that SCIM
   * manages does not change.
   */
  async updateName(tx: EntityManager, id: string, upstream: UpstreamName): Promise<void> {
    const { name, givenName = null, familyName = null } = upstream;
    await sql(tx)`
      UPDATE users
      SET name = coalesce(${name}::text, name), given_name = coalesce(${givenName}::text, given_name),
          family_name = coalesce(${familyName}::text, family_name), version = version + 1, updated_at = now()
      WHERE id = ${id} AND NOT scim_managed
        AND (name IS DISTINCT FROM coalesce(${name}::text, name)
          OR given_name IS DISTINCT FROM coalesce(${givenName}::text, given_name)
          OR family_name IS DISTINCT FROM coalesce(${familyName}::text, family_name))`;
  }

  /**
   * Changes the e-mail address of a user. Returns false if another user of the organization has the
   * address.
   */
  async changeEmail(tx: EntityManager, id: string, email: string): Promise<boolean> {
    const changed = await sql<{ id: string }>(tx)`
      UPDATE users u SET email = ${email}, version = version + 1, updated_at = now()
      WHERE u.id = ${id}
        AND NOT EXISTS (SELECT 1 FROM users other
                        WHERE other.org_id IS NOT DISTINCT FROM u.org_id AND other.email = ${email})
      RETURNING u.id`;
    return changed.length === 1;
  }

  /**
   * Removes the e-mail address with which a user signs in. In the unique index of userNames, a
   * member whom SCIM does not manage gets the {@link nameOutOfUse}, as a twin does. The caller has
   * locked the row of the user.
   */
  async clearEmail(tx: EntityManager, id: string): Promise<void> {
    await sql(tx)`
      UPDATE users SET email = NULL, version = version + 1, updated_at = now(),
             user_name = CASE WHEN scim_managed THEN user_name ELSE ${nameOutOfUse(fragment`id`)} END
      WHERE id = ${id}`;
  }

  /**
   * Gives a user an e-mail address to sign in with. No other user of the organization may have it.
   * The caller has locked the row of the user.
   */
  async giveEmail(tx: EntityManager, id: string, email: string): Promise<void> {
    await sql(tx)`
      UPDATE users SET email = ${email}, version = version + 1, updated_at = now() WHERE id = ${id}`;
  }

  /**
   * Ends the bindings of a user to identities of identity providers.
   *
   * @returns the providers of these identities
   */
  unbind(tx: EntityManager, id: string): Promise<Pick<BoundIdentity, 'issuer' | 'tenant'>[]> {
    return sql<Pick<BoundIdentity, 'issuer' | 'tenant'>>(tx)`
      DELETE FROM identities WHERE user_id = ${id} RETURNING issuer, tenant`;
  }

  /**
   * Moves everything that belongs to the person, and not to the SCIM record, from the id of the
   * record to a new user id. That is the e-mail address, the bound identities, keys, applications,
   * consents, unread notices, the role of admin and the assignments to targets. The record keeps
   * its id, its groups and the attributes of the directory. The caller has locked the row of the
   * record.
   */
  async movePerson(tx: EntityManager, recordId: string, newId: string): Promise<void> {
    const [moved] = await sql<{ email: string | null; is_org_admin: boolean }>(tx)`
      SELECT email, is_org_admin FROM users WHERE id = ${recordId}`;
    await sql(tx)`
      UPDATE users SET email = NULL, is_org_admin = false, taken_over_at = NULL, version = version + 1, updated_at = now()
      WHERE id = ${recordId}`;
    await sql(tx)`
      INSERT INTO users (id, org_id, email, name, given_name, family_name, is_org_admin, active, created_at, user_name)
      SELECT ${newId}::uuid, org_id, ${moved?.email ?? null}::text, name, given_name, family_name,
             ${moved?.is_org_admin === true}::boolean, active, created_at, ${nameOutOfUse(fragment`${newId}`)}
      FROM users WHERE id = ${recordId}`;
    await sql(tx)`UPDATE identities SET user_id = ${newId} WHERE user_id = ${recordId}`;
    await sql(tx)`
      UPDATE authenticators SET user_id = ${newId}, handle_id = coalesce(handle_id, ${recordId}::uuid)
      WHERE user_id = ${recordId}`;
    await sql(tx)`
      UPDATE users n SET key_count = o.key_count, key_used_on = o.key_used_on
      FROM users o WHERE n.id = ${newId} AND o.id = ${recordId}`;
    await sql(tx)`
      UPDATE users SET key_count = 0, key_used_on = '-infinity' WHERE id = ${recordId}`;
    await this.copyDemandForPass(tx, recordId, newId);
    await sql(tx)`UPDATE ssh_attested_keys SET user_id = ${newId} WHERE user_id = ${recordId}`;
    await sql(tx)`UPDATE oauth_clients SET owner_id = ${newId} WHERE owner_id = ${recordId}`;
    await sql(tx)`UPDATE oauth_consents SET user_id = ${newId} WHERE user_id = ${recordId}`;
    await sql(tx)`UPDATE access_assignments SET user_id = ${newId} WHERE user_id = ${recordId}`;
    await sql(tx)`UPDATE account_notices SET user_id = ${newId} WHERE user_id = ${recordId}`;
  }

  /**
   * Copies from one user to another the rule that the next enrollment of a security key needs a
   * re-enrollment pass. The caller gives the e-mail address of the first user to the second user.
   * Without the copy, the person could then enroll a key without a pass.
   */
  async copyDemandForPass(tx: EntityManager, fromId: string, toId: string): Promise<void> {
    await sql(tx)`
      INSERT INTO enrollment_passes (user_id, hash, created_by, created_at, expires_at)
      SELECT ${toId}::uuid, NULL, created_by, created_at, expires_at FROM enrollment_passes WHERE user_id = ${fromId}
      ON CONFLICT (user_id) DO NOTHING`;
  }

  /**
   * Returns true if the next enrollment of a security key by the user needs a re-enrollment pass.
   * The caller has locked the row of the user.
   */
  async needsPass(tx: EntityManager, userId: string): Promise<boolean> {
    const found = await sql<{ user_id: string }>(tx)`
      SELECT user_id FROM enrollment_passes WHERE user_id = ${userId}`;
    return found.length === 1;
  }

  /** Activates or deactivates a user, and raises the version of the row. */
  async setActive(tx: EntityManager, id: string, active: boolean): Promise<void> {
    await sql(tx)`
      UPDATE users SET active = ${active}, version = version + 1, updated_at = now() WHERE id = ${id}`;
  }

  /** Removes a user. Foreign keys delete the keys, identities and applications of the user. */
  async remove(tx: EntityManager, id: string): Promise<void> {
    await sql(tx)`DELETE FROM users WHERE id = ${id}`;
  }
}

function user(row: UserRow): User {
  return {
    id: row.id,
    orgId: row.org_id,
    email: row.email,
    name: row.name,
    isOrgAdmin: row.is_org_admin,
    active: row.active,
    scimManaged: row.scim_managed,
  };
}

function member(row: MemberRow): Member {
  const { orgId: _, ...shown } = user(row);
  const ties = tiesOfRow(row);
  const state = JSON.stringify([shown, row.version, row.key_ids, ties]);
  const revision = hash('sha256', state, 'base64url').slice(0, 22);
  return { ...shown, keys: row.key_ids.length, createdAt: row.created_at, ties, revision };
}
