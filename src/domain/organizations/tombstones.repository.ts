/**
 * Tombstones: rows that keep a user whom SCIM or an admin removed from joining the organization
 * again by a sign-in. There is one tombstone for each e-mail address that the user ever had, and
 * one for each identity (account at an identity provider). While there is a tombstone, a sign-in
 * with the address or identity creates no member. It also binds neither of them to another SCIM
 * record, with the exception that {@link forbidsBinding} describes. If SCIM gives the address to a
 * user, it lifts the tombstone for this user alone (`lifted_for`). An admin can delete every
 * tombstone.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';

/** An identity at an identity provider, and the e-mail address that the provider states for it. */
interface ClaimedIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly email: string;
}

/** The facts that a tombstone records when a user is removed. */
export interface Bar {
  /**
   * The SCIM record whose userName or externalId lets the identities of the user sign in again. For
   * a user whom SCIM manages, it is the record of that user. For a member who signed in with the
   * e-mail address of a record (a twin), it is the record with this address.
   */
  readonly recordId: string;
  /** True if an admin removed the user. Only an admin can then delete the tombstone. */
  readonly byAdmin: boolean;
}

/** The names of a SCIM record, by which the tombstones of identities are found. */
export interface RecordNames {
  readonly userName: string;
  readonly externalId: string | null;
}

/**
 * Inserts the tombstones of a user that is about to be removed. The caller has locked the row of
 * the user.
 */
export async function setTombstones(
  tx: EntityManager,
  orgId: string,
  userId: string,
  { recordId, byAdmin }: Bar,
): Promise<void> {
  await sql(tx)`
    WITH had AS (
      SELECT address FROM record_addresses WHERE user_id = ${userId} AND org_id = ${orgId} AND NOT parted
      UNION SELECT email FROM users WHERE id = ${userId} AND org_id = ${orgId} AND email IS NOT NULL
    ), address AS (
      INSERT INTO scim_tombstones AS t (org_id, email, by_admin)
      SELECT ${orgId}::uuid, address, ${byAdmin}::boolean FROM had ORDER BY address
      ON CONFLICT (org_id, email) DO UPDATE
        SET lifted_for = NULL, created_at = now(), by_admin = t.by_admin OR EXCLUDED.by_admin
    )
    INSERT INTO scim_removed_identities AS r
      (org_id, issuer, subject, by_admin, removed_user, user_name, external_id, addresses)
    SELECT ${orgId}::uuid, i.issuer, i.subject, ${byAdmin}::boolean, ${userId}::uuid,
           CASE WHEN n.scim_managed THEN coalesce(n.user_name, n.email) ELSE n.email END, n.external_id, ARRAY(SELECT address FROM had)
    FROM identities i LEFT JOIN users n ON n.id = ${recordId}
    WHERE i.user_id = ${userId}
    ON CONFLICT (org_id, issuer, subject) DO UPDATE
      SET by_admin = r.by_admin OR EXCLUDED.by_admin, removed_user = EXCLUDED.removed_user,
          user_name = EXCLUDED.user_name, external_id = EXCLUDED.external_id, addresses = EXCLUDED.addresses,
          lifted_for = NULL, created_at = now()`;
}

/**
 * Lifts the tombstones of e-mail addresses for one user, who newly gets the addresses. For all
 * other users the tombstones stay. A tombstone that an admin caused is not lifted.
 *
 * @returns the addresses with a tombstone that was lifted now
 */
export async function liftTombstones(
  tx: EntityManager,
  orgId: string,
  userId: string,
  addresses: readonly string[],
): Promise<string[]> {
  if (addresses.length === 0) return [];
  const lifted = await sql<{ email: string }>(tx)`
    UPDATE scim_tombstones SET lifted_for = ${userId}
    WHERE org_id = ${orgId} AND email = ANY (${addresses}::text[]) AND NOT by_admin
      AND lifted_for IS DISTINCT FROM ${userId}::uuid
    RETURNING email`;
  return lifted.map(({ email }) => email);
}

/**
 * Lifts tombstones of identities for one user, who now has the userName or externalId of the
 * removed user. For all other users the tombstones stay. A tombstone that an admin caused is not
 * lifted.
 */
export async function liftIdentities(
  tx: EntityManager,
  orgId: string,
  userId: string,
  { userName, externalId }: RecordNames,
): Promise<void> {
  await sql(tx)`
    UPDATE scim_removed_identities SET lifted_for = ${userId}
    WHERE org_id = ${orgId} AND NOT by_admin
      AND (lower(user_name COLLATE "C") = lower(${userName}::text COLLATE "C") OR external_id = ${externalId}::text)`;
}

/**
 * Returns true if a sign-in must not give a user an e-mail address. That is so if the user who had
 * it was removed, or if a SCIM record has it or ever had it.
 */
export async function forbidsAddress(
  tx: EntityManager,
  orgId: string,
  email: string,
  userId: string,
): Promise<boolean> {
  const [row] = await sql<{ forbidden: boolean }>(tx)`
    SELECT EXISTS (SELECT FROM scim_tombstones
                   WHERE org_id = ${orgId} AND email = ${email} AND lifted_for IS DISTINCT FROM ${userId}::uuid)
        OR EXISTS (SELECT FROM record_addresses
                   WHERE org_id = ${orgId} AND address = ${email} AND NOT parted AND user_id <> ${userId}) AS forbidden`;
  return row?.forbidden === true;
}

/**
 * Returns true if a sign-in must not create a member. That is so if the user of the e-mail address
 * or of the identity was removed. It is also so if a SCIM record has the address or ever had it.
 */
export async function forbidsNewMember(
  tx: EntityManager,
  orgId: string,
  { issuer, subject, email }: ClaimedIdentity,
): Promise<boolean> {
  const [row] = await sql<{ forbidden: boolean }>(tx)`
    SELECT EXISTS (SELECT FROM scim_tombstones WHERE org_id = ${orgId} AND email = ${email})
        OR EXISTS (SELECT FROM record_addresses WHERE org_id = ${orgId} AND address = ${email} AND NOT parted)
        OR EXISTS (SELECT FROM scim_removed_identities
                   WHERE org_id = ${orgId} AND issuer = ${issuer} AND subject = ${subject}) AS forbidden`;
  return row?.forbidden === true;
}

/**
 * Returns true if a sign-in must not bind an identity to a SCIM record, because the e-mail address
 * or the identity has a tombstone. If the address is the userName of an active record, only a
 * tombstone by an admin counts.
 */
export async function forbidsBinding(
  tx: EntityManager,
  orgId: string,
  { issuer, subject, email }: ClaimedIdentity,
  recordId: string,
): Promise<boolean> {
  const [row] = await sql<{ forbidden: boolean }>(tx)`
    SELECT EXISTS (
             SELECT FROM scim_tombstones t
             WHERE t.org_id = ${orgId} AND t.email = ${email} AND t.lifted_for IS DISTINCT FROM ${recordId}::uuid
               AND (t.by_admin OR NOT EXISTS (
                 SELECT FROM users u
                 WHERE u.id = ${recordId} AND u.active AND lower(coalesce(u.user_name, u.email) COLLATE "C") = t.email)))
        OR EXISTS (
             SELECT FROM scim_removed_identities i
             WHERE i.org_id = ${orgId} AND i.issuer = ${issuer} AND i.subject = ${subject}
               AND i.lifted_for IS DISTINCT FROM ${recordId}::uuid
               AND (i.by_admin OR (i.removed_user IS NOT NULL AND i.removed_user <> ${recordId}::uuid))) AS forbidden`;
  return row?.forbidden === true;
}

/** Deletes the tombstone of an identity, because the identity is bound to a user again. */
export async function forgetIdentity(
  tx: EntityManager,
  orgId: string,
  { issuer, subject }: Omit<ClaimedIdentity, 'email'>,
): Promise<void> {
  await sql(tx)`
    DELETE FROM scim_removed_identities
    WHERE org_id = ${orgId} AND issuer = ${issuer} AND subject = ${subject}`;
}

/**
 * Deletes the tombstone of an e-mail address, and the tombstones of the identities of the removed
 * user who had this address. Several removed users may have had the address, for example that of a
 * shared mailbox. Then only the user who had it as userName can sign in again.
 *
 * @returns the numbers of both kinds of tombstones
 */
export async function readmitUser(
  tx: EntityManager,
  orgId: string,
  email: string,
): Promise<{ readonly addresses: number; readonly identities: number }> {
  const addresses = await sql<{ email: string }>(tx)`
    DELETE FROM scim_tombstones WHERE org_id = ${orgId} AND email = ${email} RETURNING email`;
  const identities = await sql<{ subject: string }>(tx)`
    WITH found AS (
      SELECT issuer, subject, coalesce(lower(user_name COLLATE "C"), issuer || ' ' || subject) AS person
      FROM scim_removed_identities WHERE org_id = ${orgId} AND ${email}::text = ANY (addresses)
    )
    DELETE FROM scim_removed_identities r USING found f
    WHERE r.org_id = ${orgId} AND r.issuer = f.issuer AND r.subject = f.subject
      AND (f.person = ${email} OR (SELECT count(DISTINCT person) FROM found) = 1)
    RETURNING r.subject`;
  return { addresses: addresses.length, identities: identities.length };
}
