import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** A secret of a client that is good: anything of it but the secret. */
export interface ClientSecret {
  readonly id: string;
  readonly createdAt: Date;
  /** Null until it is rotated out. */
  readonly expiresAt: Date | null;
}

/** How a client's secrets follow one another. */
@Injectable()
export class ClientSecretsRepository {
  /** The secrets that are good now, the newest first. */
  async list(tx: EntityManager, clientId: string): Promise<ClientSecret[]> {
    const rows = await sql<{ id: string; created_at: Date; expires_at: Date | null }>(tx)`
      SELECT id, created_at, expires_at FROM oauth_client_secrets
      WHERE client_id = ${clientId} AND (expires_at IS NULL OR expires_at > now())
      ORDER BY created_at DESC, id DESC`;
    return rows.map(({ id, created_at: createdAt, expires_at: expiresAt }) => ({
      id,
      createdAt,
      expiresAt,
    }));
  }

  /** Lets all secrets of a client end in so many seconds; one that ends before stays with its end. */
  async retire(tx: EntityManager, clientId: string, seconds: number): Promise<void> {
    await sql(tx)`
      UPDATE oauth_client_secrets
      SET expires_at = least(expires_at, now() + make_interval(secs => ${seconds}))
      WHERE client_id = ${clientId}`;
  }

  /** Ends a secret at once. False when it was none that is good. */
  async revoke(tx: EntityManager, clientId: string, id: string): Promise<boolean> {
    const revoked = await sql<{ id: string }>(tx)`
      DELETE FROM oauth_client_secrets
      WHERE id = ${id} AND client_id = ${clientId} AND (expires_at IS NULL OR expires_at > now())
      RETURNING id`;
    return revoked.length === 1;
  }

  /** Removes every secret of a client that needs none any more. */
  async removeAll(tx: EntityManager, clientId: string): Promise<void> {
    await sql(tx)`DELETE FROM oauth_client_secrets WHERE client_id = ${clientId}`;
  }
}
