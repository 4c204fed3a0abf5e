import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { fragment, sql, SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { floorAfterChange, larger } from './serial-floor.js';

/** The serials of one range, both ends included. */
export interface SerialRange {
  readonly first: bigint;
  readonly last: bigint;
}

/**
 * The SQL of the highest serial: the value of the sequence, or the serial of a row if that is
 * higher. Both are read, because in a copy of a database the sequence may be older than the rows.
 */
const HIGHEST = fragment`greatest(
  (SELECT last_value FROM ssh_certificate_serial), (SELECT max(serial) FROM ssh_certificates))`;

/**
 * The facts that decide how the serials continue after a start of PostgreSQL. `same`: it is the
 * database that the service used before. `another`: it may be a different database, or may have
 * lost commits, for example after a failover. `clock` is the time of this process, in milliseconds
 * since 1970.
 */
export type SerialMove =
  | {
      readonly kind: 'same';
      readonly clock: number;
      /**
       * The highest serial that a process of this service saw, because a crash may lose the newest
       * serials.
       */
      readonly highestSeen?: bigint | undefined;
    }
  | {
      readonly kind: 'another';
      readonly clock: number;
      /**
       * `first` revokes every serial so far, because a loss of commits is proven, or because no
       * process of this service remembers the database. `unrecorded` revokes only the serials whose
       * certificates may have been issued although the database lost their rows.
       */
      readonly revokeFrom: 'first' | 'unrecorded';
      /**
       * The highest serial that a process of this service saw before the change. It is the result
       * of {@link highestSerial} after each confirmation of the server, or a serial that the
       * process itself issued. Undefined only if no such process runs.
       */
      readonly highestSeen: bigint | undefined;
      /**
       * The longest validity of a certificate, in hours. The revocation list contains the ranges
       * for one hour longer.
       */
      readonly sessionHours: number;
    };

/** The serials after {@link moveSerials}, and the ranges that it has revoked. */
export interface MovedSerials {
  /** Every serial that is issued from now on is higher than this one. */
  readonly floor: bigint;
  /** The ranges of serials that this move revokes, ascending; empty if it revokes none. */
  readonly ranges: readonly SerialRange[];
}

/**
 * If a certificate was issued this long ago, the transactions of all lower serials have ended, too.
 * The time limits in `connection.ts` end a transaction that gets a serial after at most a minute.
 */
const LONGEST_ISSUANCE = '2 minutes';

/**
 * The SQL query for the highest settled serial. The transactions that got this serial and all lower
 * ones have ended. So if the row of a lower serial is missing, nothing is wrong. If the row of a
 * higher serial is missing, a failover may have lost it. Therefore the clean-up keeps this row and
 * all later ones.
 */
export const SETTLED_SERIAL = `
  SELECT serial FROM ssh_certificates
  WHERE issued_at < (SELECT issued_at FROM ssh_certificates ORDER BY serial DESC LIMIT 1) - interval '${LONGEST_ISSUANCE}'
  ORDER BY serial DESC LIMIT 1`;
const SETTLED = new SqlFragment([SETTLED_SERIAL], []);

/**
 * Moves the sequence of serials forward after a start of PostgreSQL, in the transaction that
 * confirms the start. It never moves the sequence back.
 *
 * The ALTER SEQUENCE changes nothing, and only takes a lock. It waits for transactions that have
 * called `nextval`, and makes others wait until the commit. The ranges are written before `setval`,
 * because `setval` is not undone by a rollback. So if the transaction is repeated, it finds the
 * same serials without a record.
 */
export async function moveSerials(tx: EntityManager, move: SerialMove): Promise<MovedSerials> {
  await sql(tx)`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.sshAuthority})`;
  await sql(tx)`ALTER SEQUENCE ssh_certificate_serial OWNED BY NONE`;
  const { highest, now, confirmedAt } = await readFacts(tx, move.clock);
  if (move.kind === 'same') {
    const floor = larger(larger(highest, now), move.highestSeen ?? 0n);
    await setSerial(tx, floor);
    return { floor, ranges: [] };
  }
  await sql(tx)`SELECT set_config('svc.audit_epoch', 'ends', true)`;
  const { highestSeen } = move;
  const floor = floorAfterChange({ highest, confirmedAt, highestSeen, now });
  const ranges =
    move.revokeFrom === 'first' ? [{ first: 1n, last: floor }] : await unrecorded(tx, floor);
  await recordRanges(tx, ranges, move.sessionHours);
  await leaveListBehind(tx, floor);
  await setSerial(tx, floor);
  return { floor, ranges };
}

/**
 * Reads the highest serial that the database knows. A process reads it after each confirmation of
 * the server and remembers it for `highestSeen`.
 */
export async function highestSerial(tx: EntityManager): Promise<bigint> {
  const [row] = await sql<{ highest: string }>(tx)`SELECT ${HIGHEST}::text AS highest`;
  return BigInt(row?.highest ?? 0);
}

async function readFacts(tx: EntityManager, clock: number) {
  const [row] = await sql<{ highest: string; now: string; confirmed_at: string | null }>(tx)`
    SELECT ${HIGHEST}::text AS highest,
      (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text AS now,
      (SELECT (extract(epoch FROM confirmed_at) * 1000000)::bigint::text FROM database_identity) AS confirmed_at`;
  if (!row) throw new Error('SELECT returned no row');
  return {
    highest: BigInt(row.highest),
    now: larger(BigInt(row.now), BigInt(Math.floor(clock)) * 1000n),
    confirmedAt: row.confirmed_at === null ? undefined : BigInt(row.confirmed_at),
  };
}

/**
 * Makes sure that the next revocation list gets a number above every earlier one. The server may
 * have lost a list that hosts already have, and hosts refuse a list with a lower number.
 */
async function leaveListBehind(tx: EntityManager, floor: bigint): Promise<void> {
  await sql(tx)`
    UPDATE ssh_revocation_list SET digest = '', number = greatest(number, ${floor.toString()}::bigint / 1000)`;
}

/** Moves the sequence forward; a lower serial changes nothing. */
async function setSerial(tx: EntityManager, serial: bigint): Promise<void> {
  const value = serial.toString();
  await sql(tx)`
    SELECT setval('ssh_certificate_serial', ${value}::bigint)
    FROM ssh_certificate_serial WHERE last_value < ${value}::bigint`;
}

/**
 * Finds the serials, from the settled serial ({@link SETTLED_SERIAL}) to the floor, that have no
 * row. Their certificates may have been issued, and their rows lost. Such a serial may be below the
 * value of the sequence. PostgreSQL logs the sequence 32 serials ahead, and transactions do not
 * commit in the order of their serials.
 */
async function unrecorded(tx: EntityManager, floor: bigint): Promise<SerialRange[]> {
  const rows = await sql<{ first: string; last: string }>(tx)`
    WITH settled AS MATERIALIZED (
      SELECT coalesce((${SETTLED}), 0) AS serial
    ), recorded AS (
      SELECT serial FROM ssh_certificates WHERE serial > (SELECT serial FROM settled)
      UNION ALL SELECT ${floor.toString()}::bigint + 1
    ), gaps AS (
      SELECT coalesce(lag(serial) OVER (ORDER BY serial), (SELECT serial FROM settled)) + 1 AS first, serial - 1 AS last
      FROM recorded
    )
    SELECT first::text, last::text FROM gaps WHERE first <= last ORDER BY gaps.first`;
  return rows.map(({ first, last }) => ({ first: BigInt(first), last: BigInt(last) }));
}

/**
 * Records revoked ranges. If an earlier range begins at the same serial, the longer of the two
 * stays.
 */
async function recordRanges(
  tx: EntityManager,
  ranges: readonly SerialRange[],
  sessionHours: number,
): Promise<void> {
  const firsts = ranges.map(({ first }) => first.toString());
  const lasts = ranges.map(({ last }) => last.toString());
  await sql(tx)`
    INSERT INTO ssh_revoked_ranges AS r (first_serial, last_serial, recorded_at, carried_until)
    SELECT first, last, clock_timestamp(), clock_timestamp() + make_interval(hours => ${sessionHours}::int + 1)
    FROM unnest(${firsts}::bigint[], ${lasts}::bigint[]) AS range (first, last)
    ON CONFLICT (first_serial) DO UPDATE SET recorded_at = excluded.recorded_at,
      last_serial = greatest(r.last_serial, excluded.last_serial),
      carried_until = greatest(r.carried_until, excluded.carried_until)`;
}
