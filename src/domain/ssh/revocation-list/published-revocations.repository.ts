/** The revoked certificates, and the revocation list that was last published for hosts. */

import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { sql } from '#platform/database/statements/sql.js';
import { joinRuns, NO_RUNS, type SerialRuns } from '@svc/openssh';

/** The number and the date of a published set of revoked serials. */
export interface Publication {
  /**
   * The number of this publication. A later one has a higher number, so that hosts can tell which
   * list is newer.
   */
  readonly number: bigint;
  /** The date of the publication, in whole seconds. */
  readonly generatedAt: Date;
}

/** The serials of the revoked certificates that the revocation list names. */
export interface RevokedSerials {
  /**
   * The keys of the authority in the SSH wire encoding, each with its revoked serials, ascending. A
   * key without revoked serials is in the list only if there are revoked ranges, which apply to
   * every key.
   */
  readonly authorities: readonly { readonly authority: Buffer; readonly serials: Float64Array }[];
  /**
   * The ranges of serials that are revoked under every key. Certificates may have been issued with
   * these serials although the database lost their rows.
   */
  readonly ranges: SerialRuns;
  /**
   * The SHA-256 of the whole set. If there are ranges, it also covers them and the fingerprints of
   * the published keys. If the table `ssh_revocation_list` has the same digest, this set is already
   * published.
   */
  readonly digest: Buffer;
}

/** The revoked certificates at the time of one read. */
export interface Revoked {
  readonly revoked: RevokedSerials;
  /**
   * The number and date under which the set is published; undefined if the list that was last
   * published has other serials.
   */
  readonly publication: Publication | undefined;
}

interface PublicationRow {
  number: string;
  generated_at: Date;
}

/**
 * The bytes of serials in one row of the result. A single large row would take longer to receive,
 * because the driver copies its buffer each time the buffer grows. Large buffers also make the
 * garbage collector of Node run over the whole heap.
 */
const BYTES_A_ROW = 16_384;

type RevokedRow = RevokedPart & { digest: Buffer } & (
    PublicationRow | Record<keyof PublicationRow, null>
  );

/**
 * A row that {@link listRevoked} reads, with some serials of one key, eight bytes each. If
 * `is_range` is true, the serials are pairs: the first and the last serial of each revoked range.
 */
interface RevokedPart {
  readonly authority: Buffer | null;
  readonly serials: Buffer | null;
  readonly is_range: boolean | null;
}

/**
 * Reads the revoked certificates, without those that expired more than an hour ago. PostgreSQL
 * reads every serial in the order of an index, and computes their digest. The serials are sent,
 * eight bytes each, only if the digest differs from that of the caller's set.
 *
 * The statement sends all serials as those of the oldest key, and sends the serials of each later
 * key once more under that key. {@link readAuthorities} then removes the serials of later keys from
 * those of the oldest key. The revoked ranges are sent with the serials, once for each key. The
 * time is that of the statement and not of its transaction. So a transaction that waited for {@link
 * lockPublication} sees what the transactions before it saw.
 *
 * The SQL turns sets into arrays (`unnest(ARRAY(…))`) to keep the planner's estimate of the number
 * of rows low. The planner assumes hundreds of rows for a small table without statistics, and a
 * thousand for each function that returns a set. With a high estimate PostgreSQL would compile the
 * statement (JIT), which costs 0.3 s of CPU.
 *
 * @param known the set of the caller; the same object is returned if it has not changed
 */
export async function listRevoked(tx: EntityManager, known?: RevokedSerials): Promise<Revoked> {
  const rows = await sql<RevokedRow>(tx)`
    WITH revoked AS MATERIALIZED (
      SELECT coalesce(string_agg(int8send(serial), ''::bytea ORDER BY valid_before, serial), ''::bytea) AS serials
      FROM ssh_certificates
      WHERE revoked_at IS NOT NULL AND valid_before > statement_timestamp() - interval '1 hour'
    ), carried AS MATERIALIZED (
      SELECT string_agg(int8send(first_serial) || int8send(last_serial), ''::bytea ORDER BY first_serial) AS ranges
      FROM ssh_revoked_ranges WHERE carried_until > statement_timestamp()
    ), digested AS MATERIALIZED (
      SELECT serials, ranges, sha256(serials || CASE WHEN ranges IS NULL THEN ''::bytea ELSE 'ranges'::bytea || ranges || (
        SELECT convert_to(string_agg(fingerprint, ' ' ORDER BY fingerprint), 'UTF8') FROM ssh_authorities
        WHERE public_key IS NOT NULL) END) AS digest
      FROM revoked, carried
    ), compared AS MATERIALIZED (
      SELECT serials, ranges, digest, digest IS DISTINCT FROM ${known?.digest ?? null}::bytea AS is_new FROM digested
    ), oldest AS MATERIALIZED (
      SELECT fingerprint, public_key FROM ssh_authorities ORDER BY published_at, fingerprint LIMIT 1
    ), parts AS MATERIALIZED (
      SELECT 0 AS place, o.fingerprint, o.public_key, c.serials FROM compared c, oldest o WHERE c.is_new
      UNION ALL
      SELECT 1, a.fingerprint, a.public_key, later.serials
      FROM compared c, unnest(ARRAY(
        SELECT later.fingerprint FROM ssh_authorities later, oldest o WHERE later.fingerprint <> o.fingerprint
      )) named JOIN ssh_authorities a ON a.fingerprint = named CROSS JOIN LATERAL (
        SELECT string_agg(int8send(serial), ''::bytea) AS serials FROM ssh_certificates
        WHERE revoked_at IS NOT NULL AND valid_before > statement_timestamp() - interval '1 hour'
          AND ca_fingerprint = a.fingerprint AND c.is_new
      ) later WHERE later.serials IS NOT NULL
      UNION ALL
      SELECT 2, a.fingerprint, a.public_key, c.ranges
      FROM compared c, unnest(ARRAY(
        SELECT fingerprint FROM ssh_authorities WHERE public_key IS NOT NULL
      )) named JOIN ssh_authorities a ON a.fingerprint = named
      WHERE c.is_new AND c.ranges IS NOT NULL
    )
    SELECT p.public_key AS authority, p.place = 2 AS is_range, substr(p.serials, first, ${BYTES_A_ROW}::int) AS serials,
      c.digest, l.number, l.generated_at
    FROM compared c LEFT JOIN ssh_revocation_list l ON l.only_row AND l.digest = c.digest
      LEFT JOIN (parts p CROSS JOIN LATERAL unnest(ARRAY(
        SELECT generate_series(1, length(p.serials), ${BYTES_A_ROW}::int)
      )) first) ON true
    WHERE ${CONFIRMED}
    ORDER BY p.place, p.fingerprint, first`;
  const [row] = rows;
  if (!row) throw new Error('an aggregate without a row');
  const isKnown = known?.digest.equals(row.digest) === true;
  const revoked = isKnown ? known : { ...readRevoked(rows), digest: row.digest };
  return { revoked, publication: row.number === null ? undefined : publication(row) };
}

/**
 * The serials of the certificates with which no signature is accepted any more, and the time of the
 * last change of this list.
 */
export type RevokedSignatures = Omit<RevokedSerials, 'digest'> & { readonly changedAt: Date };

/**
 * Reads the certificates that were revoked while they were valid, however long ago, and the revoked
 * ranges. Signatures of these certificates, such as those of commits, are refused forever.
 */
export async function listRevokedSignatures(tx: EntityManager): Promise<RevokedSignatures> {
  const rows = await sql<RevokedPart & { changed_at: Date }>(tx)`
    WITH kept AS (
      SELECT ca_fingerprint, string_agg(int8send(serial), ''::bytea ORDER BY serial) AS serials
      FROM ssh_revoked_signatures GROUP BY ca_fingerprint
    ), ranges AS (
      SELECT string_agg(int8send(first_serial) || int8send(last_serial), ''::bytea ORDER BY first_serial) AS serials
      FROM ssh_revoked_ranges
    ), changed AS (
      SELECT coalesce(greatest((SELECT max(revoked_at) FROM ssh_revoked_signatures),
        (SELECT max(recorded_at) FROM ssh_revoked_ranges)), 'epoch') AS changed_at
    )
    SELECT a.public_key AS authority, parts.is_range, parts.serials, changed.changed_at
    FROM changed CROSS JOIN ssh_authorities a CROSS JOIN LATERAL (
      SELECT false AS is_range, (SELECT k.serials FROM kept k WHERE k.ca_fingerprint = a.fingerprint) AS serials
      UNION ALL SELECT true, r.serials FROM ranges r
    ) parts
    WHERE a.public_key IS NOT NULL AND ${CONFIRMED}
    ORDER BY parts.is_range, a.published_at, a.fingerprint`;
  return { ...readRevoked(rows), changedAt: rows[0]?.changed_at ?? new Date(0) };
}

/**
 * Returns a text that changes whenever the list of {@link listRevokedSignatures} changes. No row of
 * the list is ever deleted. So each change raises a count, a sum or a maximum in the text, or adds
 * a key.
 */
export async function versionOfSignatures(tx: EntityManager): Promise<string> {
  const [row] = await sql<{ version: string }>(tx)`
    SELECT concat_ws(' ', (SELECT concat_ws(',', count(*), max(serial)) FROM ssh_revoked_signatures),
      (SELECT concat_ws(',', count(*), max(recorded_at), sum(last_serial)) FROM ssh_revoked_ranges),
      (SELECT string_agg(fingerprint, ',' ORDER BY published_at, fingerprint) FROM ssh_authorities WHERE public_key IS NOT NULL)
    ) AS version WHERE ${CONFIRMED}`;
  if (!row) throw new Error('SELECT returned no row');
  return row.version;
}

/**
 * Locks the row of the published list until the transaction ends, so that only one transaction at a
 * time publishes a list.
 */
export async function lockPublication(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT only_row FROM ssh_revocation_list FOR UPDATE`;
}

/**
 * Records the digest of a set of serials as published, with a number above every earlier number.
 * The caller has read the set under {@link lockPublication}. The number is the clock in
 * milliseconds, so that it is also above numbers that a restored backup does not know.
 */
export async function publishList(tx: EntityManager, digest: Buffer): Promise<Publication> {
  const [row] = await sql<PublicationRow>(tx)`
    UPDATE ssh_revocation_list
    SET number = greatest(number + 1, floor(extract(epoch FROM statement_timestamp()) * 1000)),
      digest = ${digest}, generated_at = date_trunc('second', statement_timestamp())
    RETURNING number, generated_at`;
  if (!row) throw new Error('the row of the key revocation list is gone');
  return publication(row);
}

/**
 * Returns true for a serial if its certificate was revoked, or if the serial is in a revoked range.
 * The clean-up may have deleted the row of the certificate. A revoked range has the serials of
 * certificates that may have been issued although the database lost their rows. Returns false for
 * every other serial, such as one that was never issued.
 */
export async function isRevokedSerial(tx: EntityManager, serial: bigint): Promise<boolean> {
  const [row] = await sql<{ revoked: boolean }>(tx)`
    SELECT EXISTS (
      SELECT FROM ssh_certificates WHERE serial = ${serial.toString()}::bigint AND revoked_at IS NOT NULL
    ) OR EXISTS (
      SELECT FROM ssh_revoked_signatures WHERE serial = ${serial.toString()}::bigint
    ) OR EXISTS (
      SELECT FROM ssh_revoked_ranges WHERE ${serial.toString()}::bigint BETWEEN first_serial AND last_serial
    ) AS revoked
    WHERE ${CONFIRMED}`;
  return row?.revoked === true;
}

function publication(row: PublicationRow): Publication {
  return { number: BigInt(row.number), generatedAt: row.generated_at };
}

/**
 * Reads the revoked serials of each key from the rows of the statement, and the ranges, which are
 * the same for every key. A key without revoked serials is in the result only because of the
 * ranges.
 */
function readRevoked(rows: readonly RevokedPart[]): Omit<RevokedSerials, 'digest'> {
  const listed = readAuthorities(rows.filter((row) => row.is_range === false));
  const withRanges = joinParts(rows.filter((row) => row.is_range === true));
  const [ranges = NO_RUNS] = withRanges.map(({ bytes }) => readRanges(bytes));
  const others = withRanges.filter(({ authority }) =>
    listed.every((other) => !other.authority.equals(authority)),
  );
  const none = others.map(({ authority }) => ({ authority, serials: new Float64Array() }));
  return { authorities: [...listed, ...none], ranges };
}

/**
 * Reads the revoked serials of each key of the authority. The rows of the oldest key contain all
 * serials, so the serials of later keys are removed from these rows.
 */
function readAuthorities(rows: readonly RevokedPart[]): RevokedSerials['authorities'] {
  const [oldest, ...later] = joinParts(rows).map(({ authority, bytes }) => ({
    authority,
    serials: readSerials(bytes).toSorted(),
  }));
  if (oldest === undefined || later.length === 0) return oldest ? [oldest] : [];
  const ofLater = new Set(later.flatMap(({ serials }) => Array.from(serials)));
  const own = oldest.serials.filter((serial) => !ofLater.has(serial));
  return [{ ...oldest, serials: own }, ...later].filter(({ serials }) => serials.length > 0);
}

/**
 * Joins the serials of each key, which come in several rows ({@link BYTES_A_ROW}), in the order of
 * the rows.
 */
function joinParts(rows: readonly RevokedPart[]): { authority: Buffer; bytes: Buffer }[] {
  const found = new Map<string, { authority: Buffer; parts: Buffer[] }>();
  for (const { authority, serials } of rows) {
    if (serials === null) continue; // no serial of this key is revoked
    if (authority === null) throw new Error('a revoked certificate of an authority without a key');
    const key = authority.toString('latin1');
    const { parts } = found.get(key) ?? { parts: [] };
    found.set(key, { authority, parts: [...parts, serials] });
  }
  return [...found.values()].map(({ authority, parts }) => ({
    authority,
    bytes: Buffer.concat(parts),
  }));
}

/** Reads ranges of serials, each as its first and last serial. The ranges may overlap. */
function readRanges(bytes: Buffer): SerialRuns {
  const ends = readSerials(bytes);
  const low = ends.filter((_, index) => index % 2 === 0);
  const high = ends.filter((_, index) => index % 2 === 1);
  return joinRuns({ low, high }, NO_RUNS);
}

/**
 * Reads serials of eight bytes each. A JavaScript number holds each of them exactly, because the
 * sequence of serials ends at 2^53.
 */
function readSerials(bytes: Buffer): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const serials = new Float64Array(bytes.length / 8);
  for (let index = 0; index < serials.length; index += 1) {
    serials[index] = view.getUint32(8 * index) * 2 ** 32 + view.getUint32(8 * index + 4);
  }
  return serials;
}
