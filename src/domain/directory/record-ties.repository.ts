import type { AuditEvent } from '#domain/audit/audit-event.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import { nameOutOfUse } from './users.repository.js';
import { RANK } from './record-addresses.js';

// The e-mail addresses of SCIM records, and the ties of records to users who are, or may be, the
// same person. Before every write, the caller locks the directory of the organization by
// `lockDirectory`. Database triggers keep the addresses up to date.

/** A user who signs in with one of the given e-mail addresses. */
export interface AddressHolder {
  readonly id: string;
  readonly email: string;
  readonly scimManaged: boolean;
  readonly isOrgAdmin: boolean;
  readonly isTwin: boolean;
  /**
   * True for a user with a bound identity, a key, or a row that makes the next enrollment need a
   * re-enrollment pass. A person has already used the account of such a user.
   */
  readonly isInUse: boolean;
}

/**
 * A SCIM record that has a given e-mail address, as it is read when a person signs in with the
 * address.
 */
export interface RecordOfAddress {
  readonly id: string;
  readonly rank: number;
  readonly active: boolean;
  /**
   * True while another user signs in with an e-mail address of this record. A sign-in then ignores
   * the record.
   */
  readonly isPassedOver: boolean;
}

/**
 * The tie of a SCIM record to another user. `twin`: the user is a member who signed in with an
 * e-mail address of the record. `link`: the user belongs to another SCIM record, and signs in with
 * the address that is the userName of this record.
 */
export interface RecordTie {
  readonly recordId: string;
  readonly userId: string;
  readonly kind: 'twin' | 'link';
  readonly isRecordActive: boolean;
  readonly isUserActive: boolean;
}

/** The values of a new tie of a SCIM record to the user who signs in with one of its addresses. */
export interface NewTie {
  readonly orgId: string;
  readonly recordId: string;
  readonly userId: string;
  readonly address: string;
}

/**
 * Finds the users of an organization who sign in with one of some e-mail addresses, in the order of
 * their ids.
 */
export async function holdersOf(
  tx: EntityManager,
  orgId: string,
  addresses: readonly string[],
): Promise<AddressHolder[]> {
  if (addresses.length === 0) return [];
  return sql<AddressHolder>(tx)`
    SELECT u.id, u.email, u.scim_managed AS "scimManaged", u.is_org_admin AS "isOrgAdmin",
           EXISTS (SELECT FROM record_ties t WHERE t.user_id = u.id AND t.kind = 'twin') AS "isTwin",
           u.key_count > 0 OR EXISTS (SELECT FROM identities i WHERE i.user_id = u.id)
               OR EXISTS (SELECT FROM enrollment_passes p WHERE p.user_id = u.id) AS "isInUse"
    FROM users u WHERE u.org_id = ${orgId} AND u.email = ANY (${addresses}::text[])
    ORDER BY u.id`;
}

/**
 * Finds the SCIM records that have an e-mail address to sign in with, sorted by the rank of the
 * address. A record is left out if an admin separated it from the address.
 */
export function recordsOf(
  tx: EntityManager,
  orgId: string,
  address: string,
): Promise<RecordOfAddress[]> {
  return sql<RecordOfAddress>(tx)`
    SELECT u.id, a.rank, u.active,
           EXISTS (SELECT FROM record_addresses w WHERE w.user_id = u.id AND w.withheld AND w.rank IS NOT NULL) AS "isPassedOver"
    FROM record_addresses a JOIN users u ON u.id = a.user_id
    WHERE a.org_id = ${orgId} AND a.address = ${address} AND a.rank IS NOT NULL AND NOT a.parted
    ORDER BY a.rank, u.id`;
}

/**
 * Returns the e-mail addresses of a SCIM record with which its user cannot sign in. `parted`: an
 * admin decided that the record and the person who signs in with the address are two people.
 * `withheld`: another user signs in with the address already.
 */
export async function withoutEffect(
  tx: EntityManager,
  userId: string,
): Promise<{ readonly parted: ReadonlySet<string>; readonly withheld: ReadonlySet<string> }> {
  const rows = await sql<{ address: string; parted: boolean }>(tx)`
    SELECT address, parted FROM record_addresses WHERE user_id = ${userId} AND (parted OR withheld)`;
  return {
    parted: new Set(rows.flatMap((row) => (row.parted ? row.address : []))),
    withheld: new Set(rows.flatMap((row) => (row.parted ? [] : row.address))),
  };
}

/**
 * Returns the e-mail addresses of a SCIM record with which its user may sign in, sorted by their
 * rank.
 */
export async function usableAddresses(tx: EntityManager, userId: string): Promise<string[]> {
  const rows = await sql<{ address: string }>(tx)`
    SELECT address FROM record_addresses
    WHERE user_id = ${userId} AND rank IS NOT NULL AND NOT parted AND NOT withheld ORDER BY rank`;
  return rows.map(({ address }) => address);
}

/**
 * Finds the ties of some users, both those of a SCIM record to another user and those of another
 * user to a SCIM record.
 */
export function tiesOf(tx: EntityManager, ids: readonly string[]): Promise<RecordTie[]> {
  return sql<RecordTie>(tx)`
    SELECT t.record_id AS "recordId", t.user_id AS "userId", t.kind,
           r.active AS "isRecordActive", u.active AS "isUserActive"
    FROM (SELECT * FROM record_ties WHERE record_id = ANY (${ids}::uuid[])
          UNION SELECT * FROM record_ties WHERE user_id = ANY (${ids}::uuid[])) t
    JOIN users r ON r.id = t.record_id JOIN users u ON u.id = t.user_id`;
}

/**
 * Makes a member a twin of a SCIM record: if the user of the record loses access, the member does,
 * too. The e-mail address of the member also leaves the unique index of userNames, so that the
 * record can have it. Returns false if the member is a twin of the record already.
 */
export async function addTwin(
  tx: EntityManager,
  { orgId, recordId, userId, address }: NewTie,
): Promise<boolean> {
  await leaveUserNames(tx, userId);
  const added = await sql<{ user_id: string }>(tx)`
    INSERT INTO record_ties (record_id, user_id, org_id, kind, address)
    VALUES (${recordId}, ${userId}, ${orgId}, 'twin', ${address})
    ON CONFLICT DO NOTHING RETURNING user_id`;
  return added.length === 1;
}

/**
 * Takes a member's e-mail address out of the unique index of userNames. A SCIM record may then have
 * the address as its userName. The index gets the {@link nameOutOfUse} of the member. Earlier
 * versions stored the id without the blank.
 */
export async function leaveUserNames(tx: EntityManager, userId: string): Promise<void> {
  await sql(tx)`
    UPDATE users SET user_name = ${nameOutOfUse(fragment`id`)}
    WHERE id = ${userId} AND NOT scim_managed AND ltrim(user_name) IS DISTINCT FROM id::text`;
}

/**
 * Puts the e-mail address of a member back into the unique index of userNames, because the member
 * is no twin of a record any more. Nothing changes if another user has the name.
 */
export async function rejoinUserNames(
  tx: EntityManager,
  orgId: string,
  userId: string,
): Promise<void> {
  await sql(tx)`
    UPDATE users u SET user_name = NULL
    WHERE u.id = ${userId} AND u.org_id = ${orgId} AND NOT u.scim_managed AND ltrim(u.user_name) = u.id::text
      AND u.email IS NOT NULL AND NOT EXISTS (
        SELECT FROM users o
        WHERE o.id <> u.id AND (o.org_id::text || lower(coalesce(o.user_name, o.email, o.id::text) COLLATE "C"))
              = u.org_id::text || u.email)`;
}

/**
 * Links a SCIM record to the user who signs in with the userName of the record. From then on a
 * sign-in ignores the record, so that a sign-in with the e-mail address still finds the same user.
 */
export async function addLink(
  tx: EntityManager,
  { orgId, recordId, userId, address }: NewTie,
): Promise<void> {
  await sql(tx)`
    INSERT INTO record_ties (record_id, user_id, org_id, kind, address)
    VALUES (${recordId}, ${userId}, ${orgId}, 'link', ${address}) ON CONFLICT DO NOTHING`;
  await sql(tx)`
    UPDATE record_addresses SET withheld = true WHERE user_id = ${recordId} AND address = ${address}`;
}

/**
 * Returns the e-mail address with which the user of a linked record cannot sign in, because another
 * user signs in with it. Returns undefined if there is none.
 */
export async function withheldFrom(
  tx: EntityManager,
  recordId: string,
): Promise<string | undefined> {
  const [row] = await sql<{ address: string }>(tx)`
    SELECT address FROM record_addresses WHERE user_id = ${recordId} AND withheld AND rank IS NOT NULL ORDER BY rank LIMIT 1`;
  return row?.address;
}

/**
 * Lets the user of a linked record sign in with the e-mail addresses of the record again. Until now
 * they were withheld, because another user signed in with them.
 */
export async function releaseAddresses(tx: EntityManager, recordId: string): Promise<void> {
  await sql(tx)`
    UPDATE record_addresses SET withheld = false WHERE user_id = ${recordId} AND withheld`;
}

/**
 * Records in the ties of a twin that the twin was deactivated together with some records. The
 * activation of these records then also activates the twin.
 */
export async function noteEnded(
  tx: EntityManager,
  recordIds: readonly string[],
  userId: string,
): Promise<void> {
  await sql(tx)`
    UPDATE record_ties SET ended = true
    WHERE user_id = ${userId} AND record_id = ANY (${recordIds}::uuid[]) AND kind = 'twin'`;
}

/**
 * Forgets that a user was deactivated because of a SCIM record, because a later act has decided if
 * the user is active.
 */
export async function forgetEnded(tx: EntityManager, userId: string): Promise<void> {
  await sql(tx)`
    UPDATE record_ties SET ended = false WHERE user_id = ${userId} AND ended`;
}

/**
 * Finds the members who were deactivated together with a SCIM record (twins of the record). A
 * member is left out if another of the records to which the member belongs is still inactive.
 */
export async function endedWith(tx: EntityManager, recordId: string): Promise<string[]> {
  const rows = await sql<{ id: string }>(tx)`
    SELECT t.user_id AS id FROM record_ties t
    WHERE t.record_id = ${recordId} AND t.kind = 'twin' AND t.ended
      AND NOT EXISTS (
        SELECT FROM record_ties o JOIN users r ON r.id = o.record_id
        WHERE o.user_id = t.user_id AND o.kind = 'twin' AND o.record_id <> t.record_id AND NOT r.active)`;
  return rows.map(({ id }) => id);
}

/**
 * Ends the ties of a member to the SCIM records whose twin the member is.
 *
 * @returns the ids of the records
 */
export async function untwin(tx: EntityManager, userId: string): Promise<string[]> {
  const rows = await sql<{ record_id: string }>(tx)`
    DELETE FROM record_ties WHERE user_id = ${userId} AND kind = 'twin' RETURNING record_id`;
  return rows.map((row) => row.record_id);
}

/**
 * Ends the links of a SCIM record to other records.
 *
 * @returns the ids of the other records
 */
export async function unlink(tx: EntityManager, id: string): Promise<string[]> {
  const rows = await sql<{ other: string }>(tx)`
    DELETE FROM record_ties WHERE (user_id = ${id} OR record_id = ${id}) AND kind = 'link'
    RETURNING CASE WHEN user_id = ${id} THEN record_id ELSE user_id END AS other`;
  return rows.map(({ other }) => other);
}

/**
 * Takes from some SCIM records the right to sign in with an e-mail address. They keep the address
 * as plain data, and a sign-in with it does not find them any more.
 */
export async function partAddress(
  tx: EntityManager,
  recordIds: readonly string[],
  address: string,
): Promise<void> {
  await sql(tx)`
    UPDATE record_addresses SET parted = true, rank = NULL, withheld = false
    WHERE user_id = ANY (${recordIds}::uuid[]) AND address = ${address}`;
}

/**
 * Makes a person, whom an admin separated from a SCIM record, a twin of the other records that have
 * the person's e-mail address. So the end of such a record also ends the access of the person.
 * Records that were linked to the first record because of this address are linked to it no longer.
 */
export async function tieToOthers(
  tx: EntityManager,
  partedFrom: string,
  recordIds: readonly string[],
  person: Omit<NewTie, 'recordId'>,
): Promise<void> {
  await sql(tx)`
    DELETE FROM record_ties WHERE user_id = ${partedFrom} AND kind = 'link' AND address = ${person.address}`;
  for (const recordId of recordIds) await addTwin(tx, { ...person, recordId });
}

/**
 * Finds the SCIM record whose user can now get an e-mail address to sign in with. The address has
 * the lowest rank among the addresses of the record, and the user of the record cannot sign in with
 * another address yet. Returns undefined if there is no such record, if there are several, or if a
 * user signs in with the address already.
 */
export async function recordAwaiting(
  tx: EntityManager,
  orgId: string,
  address: string,
): Promise<string | undefined> {
  const rows = await sql<{ id: string }>(tx)`
    SELECT u.id FROM record_addresses a JOIN users u ON u.id = a.user_id
    WHERE a.org_id = ${orgId} AND a.address = ${address} AND a.rank IS NOT NULL AND NOT a.parted AND NOT a.withheld
      AND u.email IS NULL
      AND NOT EXISTS (SELECT FROM users o WHERE o.org_id = ${orgId} AND o.email = ${address})
      AND a.rank = (SELECT min(f.rank) FROM record_addresses f WHERE f.user_id = u.id AND NOT f.parted)`;
  return rows.length === 1 ? rows[0]?.id : undefined;
}

/** Records a change of a tie in the audit log. */
export async function recordTieEvent(tx: EntityManager, event: AuditEvent): Promise<void> {
  await sql(tx)`${recordAudit(event)}`;
}

/**
 * Returns true if an address of this rank may lead a sign-in to its SCIM record. These are the
 * primary e-mail, the only e-mail of type `work`, and the first e-mail of a record with no other
 * usable address. The caller has tried the userName before.
 */
export function bindsByMail(rank: number): boolean {
  return rank === RANK.primary || rank === RANK.onlyWork || rank === RANK.first;
}
