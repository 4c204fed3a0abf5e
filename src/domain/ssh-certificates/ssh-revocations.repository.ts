import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/sql.js';

/** Under what a set of revoked serials is published. */
export interface Publication {
  /** Grows from set to set. */
  readonly number: bigint;
  /** Whole seconds. */
  readonly generatedAt: Date;
}

/** The revoked serials of a moment. */
export interface RevokedSerials {
  /** Ascending. */
  readonly serials: readonly number[];
  /** SHA-256 of the serials, as the row of the list has it. */
  readonly digest: Buffer;
  /** Undefined where the list that was last published has other serials. */
  readonly publication: Publication | undefined;
}

interface PublicationRow {
  number: string;
  generated_at: Date;
}

type RevokedRow = { serials: Buffer; digest: Buffer } & (
  PublicationRow | Record<keyof PublicationRow, null>
);

/** Which certificates are revoked, and as which list that was last published. */
@Injectable()
export class SshRevocationsRepository {
  /**
   * Reads what is revoked and expired less than an hour ago, if at all. It travels as one value, eight bytes a serial. The
   * clock is the statement's, not its transaction's: whoever waited for {@link lock} sees nothing older than those
   * before.
   */
  async revoked(tx: EntityManager): Promise<RevokedSerials> {
    const [row] = await sql<RevokedRow>(tx)`
      WITH revoked AS MATERIALIZED (
        SELECT coalesce(string_agg(int8send(serial), ''::bytea ORDER BY serial), ''::bytea) AS serials
        FROM ssh_certificates
        WHERE revoked_at IS NOT NULL AND valid_before > statement_timestamp() - interval '1 hour'
      ), digested AS MATERIALIZED (
        SELECT serials, sha256(serials) AS digest FROM revoked
      )
      SELECT d.serials, d.digest, l.number, l.generated_at
      FROM digested d LEFT JOIN ssh_revocation_list l ON l.digest = d.digest`;
    if (!row) throw new Error('an aggregate without a row');
    return {
      serials: readSerials(row.serials),
      digest: row.digest,
      publication: row.number === null ? undefined : publication(row),
    };
  }

  /** One publisher at a time, until the transaction ends. */
  async lock(tx: EntityManager): Promise<void> {
    await sql(tx)`SELECT only_row FROM ssh_revocation_list FOR UPDATE`;
  }

  /**
   * Gives the serials of this digest, read under {@link lock}, a number beyond every earlier one: the clock's
   * milliseconds, so that also the numbers a restored backup forgot are left behind.
   */
  async publish(tx: EntityManager, digest: Buffer): Promise<Publication> {
    const [row] = await sql<PublicationRow>(tx)`
      UPDATE ssh_revocation_list
      SET number = greatest(number + 1, floor(extract(epoch FROM statement_timestamp()) * 1000)),
        digest = ${digest}, generated_at = date_trunc('second', statement_timestamp())
      RETURNING number, generated_at`;
    if (!row) throw new Error('the row of the key revocation list is gone');
    return publication(row);
  }

  /** Whether a certificate was revoked, however long ago. One that was never issued was not. */
  async isRevoked(tx: EntityManager, serial: bigint): Promise<boolean> {
    const [row] = await sql<{ revoked: boolean }>(tx)`
      SELECT EXISTS (
        SELECT FROM ssh_certificates WHERE serial = ${serial.toString()}::bigint AND revoked_at IS NOT NULL
      ) AS revoked`;
    return row?.revoked === true;
  }
}

function publication(row: PublicationRow): Publication {
  return { number: BigInt(row.number), generatedAt: row.generated_at };
}

/** Serials stay below 2^53, the end of their sequence. */
function readSerials(bytes: Buffer): number[] {
  const serials: number[] = [];
  for (let offset = 0; offset < bytes.length; offset += 8) {
    serials.push(bytes.readUInt32BE(offset) * 2 ** 32 + bytes.readUInt32BE(offset + 4));
  }
  return serials;
}
