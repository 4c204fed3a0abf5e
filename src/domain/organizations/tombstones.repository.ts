import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/** An identity at an upstream provider, and the address that it claims. */
interface ClaimedIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string;
}

/**
 * Tombstones of users that SCIM removed from an organization: of their addresses and of their identities. With a tombstone, a
 * sign-in creates no member with the address or the identity. SCIM lifts the tombstone of an address for the user that gets it.
 */
@Injectable()
export class TombstonesRepository {
  /** Sets the tombstones of a user that SCIM is about to remove; the caller holds the row of the user. */
  async setForUser(tx: EntityManager, orgId: string, userId: string): Promise<void> {
    await sql(tx)`
      WITH address AS (
        INSERT INTO scim_tombstones (org_id, email)
        SELECT org_id, email FROM users WHERE id = ${userId} AND org_id = ${orgId} AND email IS NOT NULL
        ON CONFLICT (org_id, email) DO UPDATE SET lifted_for = NULL, created_at = now()
      )
      INSERT INTO scim_removed_identities (org_id, issuer, subject)
      SELECT u.org_id, i.issuer, i.subject FROM users u JOIN identities i ON i.user_id = u.id
      WHERE u.id = ${userId} AND u.org_id = ${orgId}
      ON CONFLICT DO NOTHING`;
  }

  /** Sets the tombstone of an address that SCIM takes from an inactive user. */
  async set(tx: EntityManager, orgId: string, email: string): Promise<void> {
    await sql(tx)`
      INSERT INTO scim_tombstones (org_id, email) VALUES (${orgId}, ${email})
      ON CONFLICT (org_id, email) DO UPDATE SET lifted_for = NULL, created_at = now()`;
  }

  /** Lifts the tombstone of an address for one user; false where there is none. */
  async lift(tx: EntityManager, orgId: string, email: string, userId: string): Promise<boolean> {
    const lifted = await sql<{ email: string }>(tx)`
      UPDATE scim_tombstones SET lifted_for = ${userId}
      WHERE org_id = ${orgId} AND email = ${email} AND lifted_for IS DISTINCT FROM ${userId}::uuid
      RETURNING email`;
    return lifted.length === 1;
  }

  /** Returns true when a sign-in must not give a user an address, because SCIM removed the user who had it. */
  async forbidsAddress(
    tx: EntityManager,
    orgId: string,
    email: string,
    userId: string,
  ): Promise<boolean> {
    const found = await sql<{ email: string }>(tx)`
      SELECT email FROM scim_tombstones
      WHERE org_id = ${orgId} AND email = ${email} AND lifted_for IS DISTINCT FROM ${userId}::uuid`;
    return found.length === 1;
  }

  /** Returns true when a sign-in must not create a member, because SCIM removed the user of the address or of the identity. */
  async forbidsNewMember(
    tx: EntityManager,
    orgId: string,
    { issuer, subject, email }: ClaimedIdentity,
  ): Promise<boolean> {
    const [row] = await sql<{ forbidden: boolean }>(tx)`
      SELECT EXISTS (SELECT FROM scim_tombstones WHERE org_id = ${orgId} AND email = ${email})
          OR EXISTS (SELECT FROM scim_removed_identities
                     WHERE org_id = ${orgId} AND issuer = ${issuer} AND subject = ${subject}) AS forbidden`;
    return row?.forbidden === true;
  }

  /** Deletes the tombstone of an identity that is bound to a user again. */
  async forgetIdentity(
    tx: EntityManager,
    orgId: string,
    { issuer, subject }: Omit<ClaimedIdentity, 'email'>,
  ): Promise<void> {
    await sql(tx)`
      DELETE FROM scim_removed_identities
      WHERE org_id = ${orgId} AND issuer = ${issuer} AND subject = ${subject}`;
  }
}
