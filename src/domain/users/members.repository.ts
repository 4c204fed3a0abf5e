import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';
import type { Admin } from './acting-admin.service.js';

/** A member of an organization, as its admins see them. */
export interface Member {
  readonly id: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly active: boolean;
  readonly scimManaged: boolean;
  /** How many keys they have enrolled. */
  readonly keys: number;
  readonly createdAt: Date;
}

interface Row {
  id: string;
  email: string | null;
  name: string | null;
  is_org_admin: boolean;
  active: boolean;
  scim_managed: boolean;
  keys: number;
  created_at: Date;
}

/** The people of one organization, and which of them are its admins. */
@Injectable()
export class MembersRepository {
  /**
   * The members of an organization in the order of their ids, from after one of them. The organization is named as a range, for
   * which one index alone has the order.
   */
  async list(
    tx: EntityManager,
    orgId: string,
    { after, limit }: { readonly after: string; readonly limit: number },
  ): Promise<Member[]> {
    const rows = await sql<Row>(tx)`
      SELECT u.id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed, u.created_at,
             (SELECT count(*)::int FROM authenticators k WHERE k.user_id = u.id) AS keys
      FROM users u
      WHERE u.org_id BETWEEN ${orgId} AND ${orgId} AND (u.org_id, u.id) > (${orgId}::uuid, ${after}::uuid)
      ORDER BY u.org_id, u.id LIMIT ${limit}`;
    return rows.map(member);
  }

  /** A member of an organization. */
  async find(tx: EntityManager, orgId: string, id: string): Promise<Member | undefined> {
    const [row] = await sql<Row>(tx)`
      SELECT u.id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed, u.created_at,
             (SELECT count(*)::int FROM authenticators k WHERE k.user_id = u.id) AS keys
      FROM users u
      WHERE u.id = ${id} AND u.org_id = ${orgId}`;
    return row && member(row);
  }

  /**
   * Locks members until the transaction ends, in the order of their ids: two admins who act on each other wait for one
   * another in the same order, and the second sees what the first did. Those of other organizations stay untouched.
   */
  async lock(tx: EntityManager, orgId: string, ids: readonly string[]): Promise<void> {
    await sql(tx)`
      SELECT id FROM users WHERE id = ANY (${ids}::uuid[]) AND org_id = ${orgId} ORDER BY id FOR UPDATE`;
  }

  /** Whether a user is an acting admin of the organization, in a hardware-verified session of theirs that is alive. */
  async isActingAdmin(tx: EntityManager, { id, orgId, sessionId }: Admin): Promise<boolean> {
    const found = await sql<{ id: string }>(tx)`
      SELECT u.id FROM users u JOIN sessions s ON s.user_id = u.id
      WHERE u.id = ${id} AND u.org_id = ${orgId} AND is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active)
        AND s.id = ${sessionId} AND s.level = 'verified' AND s.expires_at > now()`;
    return found.length === 1;
  }

  /**
   * The same, and so until the transaction ends: first the row of the user is locked, then the one of the session. Two
   * statements, so that each judges the row as it is under the lock.
   */
  async lockAdmin(tx: EntityManager, { id, orgId, sessionId }: Admin): Promise<boolean> {
    const admins = await sql<{ id: string }>(tx)`
      SELECT id FROM users
      WHERE id = ${id} AND org_id = ${orgId} AND is_acting_admin(org_id, email, is_org_admin, active)
      FOR SHARE`;
    if (admins.length === 0) return false;
    const sessions = await sql<{ id: string }>(tx)`
      SELECT id FROM sessions
      WHERE id = ${sessionId} AND user_id = ${id} AND level = 'verified' AND expires_at > now()
      FOR SHARE`;
    return sessions.length === 1;
  }

  /** Makes a member an admin, or one no longer; false when that changes nothing. */
  async setAdmin(
    tx: EntityManager,
    orgId: string,
    id: string,
    isOrgAdmin: boolean,
  ): Promise<boolean> {
    const changed = await sql<{ id: string }>(tx)`
      UPDATE users SET is_org_admin = ${isOrgAdmin}
      WHERE id = ${id} AND org_id = ${orgId} AND is_org_admin <> ${isOrgAdmin}
      RETURNING id`;
    return changed.length === 1;
  }
}

function member(row: Row): Member {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    isOrgAdmin: row.is_org_admin,
    active: row.active,
    scimManaged: row.scim_managed,
    keys: row.keys,
    createdAt: row.created_at,
  };
}
