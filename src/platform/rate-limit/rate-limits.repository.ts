import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/sql.js';
import { longestDebt, verdict, type Rate, type Verdict } from './gcra.js';

/** Buckets that all replicas share, judged by the one clock they share: the database's. */
@Injectable()
export class RateLimitsRepository {
  /**
   * Decides about one request, as `gcra` does, in one statement: the row's lock puts those of one bucket in a row, and each
   * sees what the one before it did. A request that had to wait for the lock is judged by the time it came, which is never
   * later than now.
   *
   * A refused request writes its refusal, too, since only a row that is written is returned as it is now. It moves the
   * bucket only where the server's clock was set back, and nobody could have come to owe so much.
   */
  async take(tx: EntityManager, bucket: string, rate: Rate): Promise<Verdict> {
    const interval = rate.interval / 1000;
    const most = longestDebt(rate) / 1000;
    const tolerance = most - interval;
    const [row] = await sql<{ admitted: boolean; debt: number }>(tx)`
      INSERT INTO rate_limits AS known (bucket, tat, admitted)
      VALUES (${bucket}, now() + make_interval(secs => ${interval}), true)
      ON CONFLICT (bucket) DO UPDATE SET
        admitted = known.tat <= now() + make_interval(secs => ${tolerance}),
        tat = CASE
          WHEN known.tat <= now() + make_interval(secs => ${tolerance})
            THEN greatest(known.tat, now()) + make_interval(secs => ${interval})
          ELSE least(known.tat, now() + make_interval(secs => ${most}))
        END
      RETURNING admitted, 1000 * extract(epoch FROM tat - now())::double precision AS debt`;
    if (!row) throw new Error('INSERT returned no row');
    return verdict(row.admitted, row.debt, rate);
  }

  /**
   * Deletes buckets that are out of debt, which are as good as new ones.
   *
   * @param most how many at once
   * @returns how many there were
   */
  async deleteExpired(tx: EntityManager, most: number): Promise<number> {
    // Who is waited for by nobody: two replicas may clear up at once, and no client waits for either.
    const [row] = await sql<{ deleted: number }>(tx)`
      WITH expired AS (
        SELECT bucket FROM rate_limits WHERE tat < now() LIMIT ${most} FOR UPDATE SKIP LOCKED
      ), deleted AS (
        DELETE FROM rate_limits USING expired WHERE rate_limits.bucket = expired.bucket RETURNING 1
      )
      SELECT count(*)::integer AS deleted FROM deleted`;
    return row?.deleted ?? 0;
  }
}
