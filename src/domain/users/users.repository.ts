import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** A user as sign-in and enrollment need to know them. */
export interface User {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly active: boolean;
  readonly scimManaged: boolean;
}

/** A name as an identity provider gives it. */
export interface UpstreamName {
  readonly name: string | null;
  readonly givenName?: string;
  readonly familyName?: string;
}

/** A person about to be made. */
export interface NewPerson extends UpstreamName {
  readonly id: string;
  readonly orgId: string | null;
  readonly email: string;
}

interface Row {
  id: string;
  org_id: string | null;
  email: string | null;
  name: string | null;
  is_org_admin: boolean;
  active: boolean;
  scim_managed: boolean;
}

/** Users and the upstream identities bound to them. */
@Injectable()
export class UsersRepository {
  /** The user an upstream identity is bound to. */
  async findByIdentity(
    tx: EntityManager,
    issuer: string,
    subject: string,
  ): Promise<User | undefined> {
    const [row] = await sql<Row>(tx)`
      SELECT u.id, u.org_id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed
      FROM identities i JOIN users u ON u.id = i.user_id
      WHERE i.issuer = ${issuer} AND i.subject = ${subject}`;
    return row && user(row);
  }

  /** The member of an organization with an e-mail, locked until the transaction ends. */
  async lockMember(tx: EntityManager, orgId: string, email: string): Promise<User | undefined> {
    const [row] = await sql<Row>(tx)`
      SELECT u.id, u.org_id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed
      FROM users u
      WHERE u.org_id = ${orgId} AND u.email = ${email}
      FOR UPDATE OF u`;
    return row && user(row);
  }

  /** A user, locked until the transaction ends: whoever else changes, issues to or removes them waits. */
  async lock(tx: EntityManager, id: string): Promise<User | undefined> {
    const [row] = await sql<Row>(tx)`
      SELECT u.id, u.org_id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed
      FROM users u
      WHERE u.id = ${id}
      FOR UPDATE OF u`;
    return row && user(row);
  }

  /** Adds a person; false when the e-mail is taken in the organization, also as a userName, or among people without one. */
  async create(tx: EntityManager, person: NewPerson): Promise<boolean> {
    const made = await sql<{ id: string }>(tx)`
      INSERT INTO users (id, org_id, email, name, given_name, family_name)
      VALUES (${person.id}, ${person.orgId}, ${person.email}, ${person.name}, ${person.givenName ?? null},
              ${person.familyName ?? null})
      ON CONFLICT DO NOTHING
      RETURNING id`;
    return made.length === 1;
  }

  /** Adds a person who belongs to nobody's organization, unless they are there; returns the id they have in either case. */
  async ensureOutsider(
    tx: EntityManager,
    { id, email, name }: Pick<NewPerson, 'id' | 'email' | 'name'>,
  ): Promise<string> {
    const [row] = await sql<{ id: string }>(tx)`
      INSERT INTO users (id, email, name) VALUES (${id}, ${email}, ${name})
      ON CONFLICT ON CONSTRAINT users_email DO UPDATE SET name = EXCLUDED.name
      RETURNING id`;
    if (!row) throw new Error('INSERT returned no row');
    return row.id;
  }

  /**
   * Binds a user's one upstream identity for good; false when the user has one already, or the identity is bound. The
   * caller holds the user's row lock, so that of two identities with one e-mail the second sees the first's binding.
   */
  async bindIdentity(
    tx: EntityManager,
    userId: string,
    identity: { readonly issuer: string; readonly subject: string },
  ): Promise<boolean> {
    const bound = await sql<{ user_id: string }>(tx)`
      INSERT INTO identities (issuer, subject, user_id)
      SELECT ${identity.issuer}::text, ${identity.subject}::text, ${userId}::uuid
      WHERE NOT EXISTS (SELECT 1 FROM identities WHERE user_id = ${userId})
      ON CONFLICT (issuer, subject) DO NOTHING
      RETURNING user_id`;
    return bound.length === 1;
  }

  async makeAdmin(tx: EntityManager, id: string): Promise<void> {
    await sql(tx)`UPDATE users SET is_org_admin = true WHERE id = ${id}`;
  }

  /** Follows the name that an identity provider now gives, as far as it gives one. A user that SCIM manages keeps theirs. */
  async followName(tx: EntityManager, id: string, upstream: UpstreamName): Promise<void> {
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

  /** Changes the e-mail; false when another of the organization has it. */
  async changeEmail(tx: EntityManager, id: string, email: string): Promise<boolean> {
    const changed = await sql<{ id: string }>(tx)`
      UPDATE users u SET email = ${email}, version = version + 1, updated_at = now()
      WHERE u.id = ${id}
        AND NOT EXISTS (SELECT 1 FROM users other
                        WHERE other.org_id IS NOT DISTINCT FROM u.org_id AND other.email = ${email})
      RETURNING u.id`;
    return changed.length === 1;
  }

  /** Lets a user sign in and be issued things, or not. */
  async setActive(tx: EntityManager, id: string, active: boolean): Promise<void> {
    await sql(
      tx,
    )`UPDATE users SET active = ${active}, version = version + 1, updated_at = now() WHERE id = ${id}`;
  }

  /** Removes a user, and with the row their keys, identities and all that they registered. */
  async remove(tx: EntityManager, id: string): Promise<void> {
    await sql(tx)`DELETE FROM users WHERE id = ${id}`;
  }
}

function user(row: Row): User {
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
