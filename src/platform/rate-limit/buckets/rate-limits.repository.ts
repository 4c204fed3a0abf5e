import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  constantText,
  fixedSql,
  fragment,
  sql,
  SqlFragment,
} from '#platform/database/statements/sql.js';
import { goesFirst, LAPSE_INTERVALS, type Booking } from '#platform/gcra/bookings.js';
import { GRACE, longestDebt, type Rate } from '#platform/gcra/gcra.js';
import { TIERS } from './tiers.js';

/**
 * The longest time, in seconds, for which a bucket can still have a booking after its debt has
 * ended. Until then the bucket must not be deleted.
 */
const LONGEST_LAPSE = Math.max(
  ...Object.values(TIERS).map(({ interval }) => (LAPSE_INTERVALS * interval) / 1000),
);

/**
 * A decision of the database, and the state of the bucket after it. Times are in milliseconds from
 * the moment of the decision. The debt is the time until the bucket is equal to an unused one.
 */
export interface DecidedRow {
  readonly admitted: boolean;
  readonly debt: number;
  /** The bookings of the bucket. Their moments are relative to the decision. */
  readonly bookings: readonly Booking[];
}

/** A request that a bucket decides about. */
export interface BucketRequest {
  readonly bucket: string;
  /** The request as the holder of a booking (`holderText`). */
  readonly holder: string;
  readonly rate: Rate;
}

/**
 * The statement that admits the requests of buckets without bookings and with room, which most are.
 * It returns no row for a bucket of another kind, and leaves it as it is. `$1` has the times of the
 * requests by their bucket, see {@link toAdmit}.
 */
const ADMIT = constantText(
  countingSql(
    fragment`
      SELECT bucket, now() + make_interval(secs => (request->>'interval')::double precision), true
      FROM jsonb_each($1::jsonb) AS asked (bucket, request)`,
    fragment`(excluded.tat - now())`,
    fragment`make_interval(secs => ($1::jsonb->excluded.bucket->>'most')::double precision)`,
  ),
);

/**
 * Returns the subquery by which the statement of some requests also counts them in their buckets,
 * as {@link ADMIT} does. It has a row with `bucket` and `debt`, in milliseconds, for each request
 * that it admits. All buckets have one rate, and no two requests have the same bucket. `$1` has the
 * requests with their bucket as JSON. The rows are locked in the order in which jsonb keeps its
 * keys, as {@link ADMIT} locks them.
 */
export function admittingSql(rate: Rate): SqlFragment {
  const interval = lasting(rate.interval);
  return countingSql(
    fragment`
      SELECT a.bucket, now() + ${interval}, true FROM jsonb_to_recordset($1::jsonb) AS a (bucket text)
      ORDER BY octet_length(a.bucket), a.bucket COLLATE "C"`,
    interval,
    lasting(longestDebt(rate)),
  );
}

/**
 * Returns the SQL that counts requests in their buckets, if these have no bookings and have room,
 * and that returns the admitted ones.
 *
 * @param rows the SELECT of `bucket`, `tat` and `admitted` for each request, as if its bucket were
 *   new
 * @param interval the time by which a request raises the debt of its bucket
 * @param most the longest debt that a bucket may have
 */
function countingSql(rows: SqlFragment, interval: SqlFragment, most: SqlFragment): SqlFragment {
  return fragment`
    INSERT INTO rate_limits AS known (bucket, tat, admitted) ${rows}
    ON CONFLICT (bucket) DO UPDATE SET admitted = true, tat = greatest(now(), known.tat) + ${interval}
      WHERE known.holders = '{}' AND greatest(now(), known.tat) + ${interval} <= now() + ${most}
    RETURNING bucket, 1000 * extract(epoch FROM tat - now())::double precision AS debt`;
}

/** Returns a number of milliseconds as an SQL interval. */
function lasting(milliseconds: number): SqlFragment {
  return new SqlFragment([`interval '${milliseconds} milliseconds'`], []);
}

/**
 * The statement that decides about any requests. `$1` has the requests by their bucket, as jsonb,
 * because `excluded` has only the columns of the table. Each statement reads the keys of jsonb in
 * the same order, so that no two of them lock the rows of two buckets in opposite orders.
 */
const DECIDE = constantText(fragment`
  INSERT INTO rate_limits AS known (bucket, tat, admitted)
  SELECT bucket, now() + make_interval(secs => (request->>'interval')::double precision), true
  FROM jsonb_each($1::jsonb) AS asked (bucket, request)
  ON CONFLICT (bucket) DO UPDATE SET (admitted, tat, holders, slots) = (
    SELECT decided.admitted,
           CASE WHEN decided.admitted THEN start + every ELSE start END,
           CASE WHEN kept IS NULL THEN others ELSE others || asked.holder END,
           CASE WHEN kept IS NULL THEN other_slots ELSE other_slots || kept END
    FROM jsonb_to_record($1::jsonb -> excluded.bucket) AS asked (
      holder text, first boolean, burst integer, interval double precision, most double precision,
      lapse double precision, grace double precision)
    CROSS JOIN LATERAL (
      SELECT make_interval(secs => asked.interval) AS every, now() + make_interval(secs => asked.most) AS latest,
             now() + make_interval(secs => asked.grace) AS soon
    ) AS times
    CROSS JOIN LATERAL (SELECT greatest(now(), least(known.tat, latest)) AS start) AS debt
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE is_other)::integer AS n,
             coalesce(array_agg(holder ORDER BY place) FILTER (WHERE is_other), '{}') AS others,
             coalesce(array_agg(slot ORDER BY place) FILTER (WHERE is_other), '{}') AS other_slots,
             min(slot) FILTER (WHERE NOT is_other) AS own, max(slot) FILTER (WHERE is_other) AS last,
             coalesce(max(rank) FILTER (WHERE is_tight), 0)::integer AS tight, max(slot) FILTER (WHERE is_tight) AS tight_slot,
             (count(*) FILTER (WHERE is_other AND split_part(holder, '.', 1) = split_part(asked.holder, '.', 1)) / 2)::integer AS room
      FROM (
        SELECT ranked.*, is_other AND start + (rank + 1) * every > greatest(slot, now()) + burst * every AS is_tight
        FROM (
          SELECT booking.holder, slot, place, booking.holder <> asked.holder AS is_other,
                 count(*) FILTER (WHERE booking.holder <> asked.holder) OVER (ORDER BY slot, place) AS rank
          FROM unnest(known.holders, known.slots) WITH ORDINALITY AS booking (holder, slot, place)
          WHERE slot > now() - make_interval(secs => asked.lapse) AND slot <= latest
        ) AS ranked
      ) AS live
    ) AS queue
    CROSS JOIN LATERAL (
      SELECT start + (n + 1 - burst) * every AS last_place,
             CASE WHEN first THEN greatest(start + (tight + 1 - burst) * every, tight_slot)
                  ELSE greatest(start + (n + 1 + room - burst) * every, last) END AS slot
    ) AS placed
    CROSS JOIN LATERAL (
      SELECT start + every <= latest
             AND (coalesce(own <= soon, false)
                  OR CASE WHEN first THEN slot ELSE last_place END <= CASE WHEN n = 0 THEN soon ELSE now() END)
             AS admitted
    ) AS decided
    CROSS JOIN LATERAL (SELECT CASE WHEN decided.admitted THEN NULL WHEN own IS NOT NULL THEN own
      WHEN n < burst AND (first OR n + 1 + room <= burst) THEN slot END AS kept) AS booked
  )
  RETURNING bucket, admitted, 1000 * extract(epoch FROM tat - now())::double precision AS debt, holders,
    ARRAY(SELECT 1000 * extract(epoch FROM slot - now())::double precision
          FROM unnest(slots) WITH ORDINALITY AS booking (slot, place) ORDER BY place) AS waits`);

/**
 * Reads and writes the buckets that all replicas share. All times are by the clock of the database,
 * so that the replicas agree on them.
 */
export class RateLimitsRepository {
  /**
   * Decides about requests of different buckets, by the same rules as `takeOrBook` in
   * `platform/gcra/bookings.ts`. One short statement admits most requests. A second one decides
   * about those that it did not admit, if there are any.
   *
   * @param requests the requests, of which no two may have the same bucket
   * @returns the decisions in the order of the requests
   */
  async take(tx: EntityManager, requests: readonly BucketRequest[]): Promise<DecidedRow[]> {
    const admitted = await fixedSql<AdmittedRow>(tx, ADMIT, [toAdmit(requests)]);
    const decisions = new Map<string, DecidedRow>(
      admitted.map(({ bucket, debt }) => [bucket, { admitted: true, debt, bookings: [] }]),
    );
    const others = requests.filter(({ bucket }) => !decisions.has(bucket));
    for (const row of await this.#decide(tx, others)) decisions.set(row.bucket, decided(row));
    return requests.map(({ bucket }) => {
      const decision = decisions.get(bucket);
      if (!decision) throw new Error('INSERT returned no row');
      return decision;
    });
  }

  /**
   * Decides about requests of different buckets. The row's lock serializes the requests of one
   * bucket, so that each decision sees the state after the previous decision. A request that waited
   * for the lock is decided by the time at which its statement began.
   *
   * A refused request also writes the row, because PostgreSQL returns the current row only of a
   * write. The debt is then written back as it is. If it is larger than possible, because the
   * server's clock was set back, it is reduced to the largest possible debt.
   *
   * @returns the rows of the buckets
   */
  async #decide(tx: EntityManager, requests: readonly BucketRequest[]): Promise<BucketRow[]> {
    if (requests.length === 0) return [];
    return fixedSql<BucketRow>(tx, DECIDE, [toDecide(requests)]);
  }

  /**
   * Counts a request that was allowed without a decision of this bucket, such as a failed attempt
   * in the bucket of its network. The debt never exceeds what the burst allows.
   *
   * @returns the debt of the bucket after the request, in milliseconds
   */
  async charge(tx: EntityManager, bucket: string, rate: Rate): Promise<number> {
    const interval = rate.interval / 1000;
    const most = longestDebt(rate) / 1000;
    const [row] = await sql<{ debt: number }>(tx)`
      INSERT INTO rate_limits AS known (bucket, tat, admitted)
      VALUES (${bucket}, now() + make_interval(secs => ${interval}), true)
      ON CONFLICT (bucket) DO UPDATE SET
        tat = least(greatest(known.tat, now()) + make_interval(secs => ${interval}),
                    now() + make_interval(secs => ${most}))
      RETURNING 1000 * extract(epoch FROM tat - now())::double precision AS debt`;
    if (!row) throw new Error('INSERT returned no row');
    return row.debt;
  }

  /**
   * Deletes buckets that have had no debt for so long that all their bookings have expired. A
   * missing bucket counts as a new bucket, so no limit changes.
   *
   * @param most the largest number of rows
   * @returns the number of deleted rows
   */
  async deleteExpired(tx: EntityManager, most: number): Promise<number> {
    // With SKIP LOCKED, two replicas can delete at the same time, and no request waits for either.
    const [row] = await sql<{ deleted: number }>(tx)`
      WITH expired AS (
        SELECT bucket FROM rate_limits
        WHERE tat < now() AND (slots = '{}' OR tat < now() - make_interval(secs => ${LONGEST_LAPSE}))
        LIMIT ${most} FOR UPDATE SKIP LOCKED
      ), deleted AS (
        DELETE FROM rate_limits USING expired WHERE rate_limits.bucket = expired.bucket RETURNING 1
      )
      SELECT count(*)::integer AS deleted FROM deleted`;
    return row?.deleted ?? 0;
  }
}

/** A bucket that admitted a request and has no booking. */
interface AdmittedRow {
  readonly bucket: string;
  readonly debt: number;
}

interface BucketRow {
  readonly bucket: string;
  readonly admitted: boolean;
  readonly debt: number;
  readonly holders: readonly string[];
  readonly waits: readonly number[];
}

/**
 * The times of each rate, as {@link toAdmit} writes them. There are only a few rates, so that no
 * request has to write its own.
 */
const timesOfRates = new WeakMap<Rate, string>();

/**
 * Returns what {@link ADMIT} reads of the requests: a JSON object with a member for each bucket.
 * Its times are in seconds.
 */
function toAdmit(requests: readonly BucketRequest[]): string {
  const members = requests.map(({ bucket, rate }) => {
    let times = timesOfRates.get(rate);
    if (times === undefined) {
      times = JSON.stringify({ interval: rate.interval / 1000, most: longestDebt(rate) / 1000 });
      timesOfRates.set(rate, times);
    }
    return `${JSON.stringify(bucket)}:${times}`;
  });
  return `{${members.join(',')}}`;
}

/**
 * Returns what {@link DECIDE} reads of the requests: a JSON object with a member for each bucket.
 * Its times are in seconds.
 */
function toDecide(requests: readonly BucketRequest[]): string {
  const asked = requests.map(({ bucket, holder, rate }) => [
    bucket,
    {
      holder,
      first: goesFirst(holder),
      burst: rate.burst,
      interval: rate.interval / 1000,
      most: longestDebt(rate) / 1000,
      lapse: (LAPSE_INTERVALS * rate.interval) / 1000,
      grace: GRACE / 1000,
    },
  ]);
  return JSON.stringify(Object.fromEntries(asked));
}

function decided({ admitted, debt, holders, waits }: BucketRow): DecidedRow {
  const bookings = holders.map((of, place) => ({ holder: of, slot: waits[place] ?? 0 }));
  return { admitted, debt, bookings };
}
