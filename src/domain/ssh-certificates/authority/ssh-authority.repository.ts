import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { sql } from '#platform/database/statements/sql.js';

/** Which certificate authority this database belongs to, and the sequence of its serials. */
@Injectable()
export class SshAuthorityRepository {
  /** One starter at a time, until the transaction ends. */
  async lock(tx: EntityManager): Promise<void> {
    await sql(tx)`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.sshAuthority})`;
  }

  /** @returns the fingerprint of the authority this database knows, if any */
  async known(tx: EntityManager): Promise<string | undefined> {
    const [row] = await sql<{ fingerprint: string }>(tx)`SELECT fingerprint FROM ssh_authority`;
    return row?.fingerprint;
  }

  /**
   * Records the authority once and for all.
   * @returns the fingerprint on record: this one, or that of an earlier authority, which stays
   */
  async record(tx: EntityManager, fingerprint: string): Promise<string> {
    const [row] = await sql<{ fingerprint: string }>(tx)`
      WITH recorded AS (
        INSERT INTO ssh_authority (fingerprint) VALUES (${fingerprint})
        ON CONFLICT DO NOTHING RETURNING fingerprint
      )
      SELECT fingerprint FROM recorded UNION ALL SELECT fingerprint FROM ssh_authority`;
    if (!row) throw new Error('the SSH authority was recorded outside its lock');
    return row.fingerprint;
  }

  /**
   * Moves the serials forward to the given milliseconds of the epoch, never back: after a restored backup, the clock is
   * ahead of every serial that was given out. The ALTER changes nothing; it is there for its lock, which keeps the
   * `nextval` of running replicas out between our look at the sequence and our move, until the commit.
   */
  async moveSerialForward(tx: EntityManager, milliseconds: number): Promise<void> {
    await sql(tx)`ALTER SEQUENCE ssh_certificate_serial OWNED BY NONE`;
    await sql(tx)`
      SELECT setval('ssh_certificate_serial', ${milliseconds}::bigint)
      FROM ssh_certificate_serial WHERE last_value < ${milliseconds}::bigint`;
  }
}
