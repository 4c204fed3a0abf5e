import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { doneOf, inOrder, sql } from '#platform/database/statements/sql.js';
import type { Artifact, StoredArtifact } from './artifact.js';
import type { TokenAudit } from './issued-tokens.repository.js';
import { liveGrant, type OwnedGrantRow } from './live-grant.js';

/** Which row: the library's model, and the hash of its id. */
export interface ArtifactKey {
  readonly model: string;
  readonly id: Buffer;
}

interface Row extends Partial<OwnedGrantRow> {
  n: number;
  artifact: Record<string, unknown>;
  consumed: number | null;
  consumed_ago: number | null;
}

/** Codes, tokens and whatever else the OAuth library keeps: rows that are gone with the grant they hang on. */
@Injectable()
export class ArtifactsRepository {
  /** The rows of some keys, in the order of the keys, each with the grant that it hangs on and who is behind that. */
  async find(
    tx: EntityManager,
    keys: readonly ArtifactKey[],
  ): Promise<(StoredArtifact | undefined)[]> {
    const rows = await sql<Row>(tx)`
      SELECT k.n::int, a.payload AS artifact, extract(epoch FROM a.consumed_at)::float8 AS consumed,
             extract(epoch FROM clock_timestamp() - a.consumed_at)::float8 AS consumed_ago, g.payload, g.expires_at <= now() AS is_over, h.user_id, h.org_id, h.email, h.name, h.is_org_admin,
             h.session_id, h.level, h.authenticator_id, h.aaguid, h.auth_time, h.amr, h.acr, h.expires_at
      FROM unnest(${keys.map(({ model }) => model)}::text[], ${keys.map(({ id }) => id)}::bytea[])
        WITH ORDINALITY AS k (model, id, n)
      JOIN oauth_artifacts a ON a.model = k.model AND a.id = k.id
      LEFT JOIN (oauth_grants g JOIN oauth_holders h ON h.session_id = g.session_id) ON g.id = a.grant_id`;
    return inOrder(keys.length, rows, stored);
  }

  /** Writes a row, or writes it anew. @throws QueryFailedError 23503 when what it hangs on is gone */
  async upsert(tx: EntityManager, artifact: Artifact): Promise<void> {
    const { model, id, payload, grantId, clientId, userId, userCode, expiresIn } = artifact;
    await sql(tx)`
      INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, user_code, expires_at)
      VALUES (${model}, ${id}, ${JSON.stringify(payload)}, ${grantId}, ${clientId}, ${userId}, ${userCode},
              now() + make_interval(secs => ${expiresIn}))
      ON CONFLICT (model, id) DO UPDATE SET
        payload = EXCLUDED.payload, grant_id = EXCLUDED.grant_id, user_id = EXCLUDED.user_id,
        expires_at = EXCLUDED.expires_at`;
  }

  /**
   * {@link upsert} for many at once. It waits for nobody: what somebody holds a lock on, or what is behind it, is not written
   * here, and of the same row twice the first is.
   *
   * @returns whether each was written; one that was not may still be, by itself
   */
  async upsertMany(tx: EntityManager, artifacts: readonly Artifact[]): Promise<boolean[]> {
    const firsts = new Map<string, object>();
    for (const [n, artifact] of artifacts.entries()) {
      const { model, id, payload, grantId, clientId, userId, userCode, expiresIn } = artifact;
      if (firsts.has(keyOf(artifact))) continue;
      firsts.set(keyOf(artifact), {
        n,
        model,
        id: id.toString('hex'),
        payload,
        grant_id: grantId?.toString('hex'),
        client_id: clientId,
        user_id: userId,
        user_code: userCode,
        expires_in: expiresIn,
      });
    }
    const written = await sql<{ n: number }>(tx)`
      WITH asked AS MATERIALIZED (
        SELECT k.n, k.model, decode(k.id, 'hex') AS id, k.payload, decode(k.grant_id, 'hex') AS grant_id, k.client_id,
               k.user_id, k.user_code, k.expires_in
        FROM jsonb_to_recordset(${JSON.stringify([...firsts.values()])}::jsonb) AS k (
          n int, model text, id text, payload jsonb, grant_id text, client_id text, user_id uuid, user_code text,
          expires_in int)
      ), account AS MATERIALIZED (
        SELECT id FROM users WHERE id IN (SELECT user_id FROM asked) FOR KEY SHARE SKIP LOCKED
      ), client AS MATERIALIZED (
        SELECT id FROM oauth_clients WHERE id IN (SELECT client_id FROM asked) FOR KEY SHARE SKIP LOCKED
      ), allowed AS MATERIALIZED (
        SELECT id FROM oauth_grants WHERE id IN (SELECT grant_id FROM asked) FOR KEY SHARE SKIP LOCKED
      ), held AS MATERIALIZED (
        SELECT a.model, a.id FROM asked k JOIN oauth_artifacts a ON a.model = k.model AND a.id = k.id
        FOR NO KEY UPDATE OF a SKIP LOCKED
      ), free AS MATERIALIZED (
        SELECT k.n, k.model, k.id FROM asked k
        WHERE (k.user_id IS NULL OR k.user_id IN (SELECT id FROM account))
          AND (k.client_id IS NULL OR k.client_id IN (SELECT id FROM client))
          AND (k.grant_id IS NULL OR k.grant_id IN (SELECT id FROM allowed))
          AND ((k.model, k.id) IN (SELECT model, id FROM held)
               OR NOT EXISTS (SELECT 1 FROM oauth_artifacts a WHERE a.model = k.model AND a.id = k.id))
      ), written AS (
        INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, user_code, expires_at)
        SELECT k.model, k.id, k.payload, k.grant_id, k.client_id, k.user_id, k.user_code,
               now() + make_interval(secs => k.expires_in)
        FROM asked k JOIN free f ON f.n = k.n
        ORDER BY k.model, k.id
        ON CONFLICT (model, id) DO UPDATE SET
          payload = EXCLUDED.payload, grant_id = EXCLUDED.grant_id, user_id = EXCLUDED.user_id,
          expires_at = EXCLUDED.expires_at
      )
      SELECT n FROM free`;
    return doneOf(artifacts, written);
  }

  /** Deletes the rows that expired longest ago, of any model, and waits for no other statement. */
  async removeExpired(tx: EntityManager, most: number): Promise<void> {
    await sql(tx)`
      DELETE FROM oauth_artifacts WHERE (model, id) IN (
        SELECT model, id FROM oauth_artifacts WHERE expires_at < now() ORDER BY expires_at LIMIT ${most}
        FOR UPDATE SKIP LOCKED)`;
  }

  /** Consumes a row: true for exactly one caller. One that is consumed stays, so that its second use is seen. */
  async consume(tx: EntityManager, { model, id }: ArtifactKey): Promise<boolean> {
    const won = await sql<{ model: string }>(tx)`
      UPDATE oauth_artifacts SET consumed_at = now()
      WHERE model = ${model} AND id = ${id} AND consumed_at IS NULL
      RETURNING model`;
    return won.length === 1;
  }

  /**
   * {@link consume} for many at once. It waits for nobody: a row that somebody holds is not consumed here.
   *
   * @returns true for exactly one caller of each; who was not the one may still be, by itself
   */
  async consumeMany(tx: EntityManager, keys: readonly ArtifactKey[]): Promise<boolean[]> {
    const won = await sql<{ model: string; id: Buffer }>(tx)`
      WITH free AS MATERIALIZED (
        SELECT a.model, a.id
        FROM unnest(${keys.map(({ model }) => model)}::text[], ${keys.map(({ id }) => id)}::bytea[]) AS k (model, id)
        JOIN oauth_artifacts a ON a.model = k.model AND a.id = k.id
        WHERE a.consumed_at IS NULL
        FOR NO KEY UPDATE OF a SKIP LOCKED
      )
      UPDATE oauth_artifacts a SET consumed_at = now() FROM free f
      WHERE a.model = f.model AND a.id = f.id AND a.consumed_at IS NULL
      RETURNING a.model, a.id`;
    const winners = new Set(won.map(keyOf));
    return keys.map((key) => winners.delete(keyOf(key)));
  }

  async destroy(tx: EntityManager, { model, id }: ArtifactKey): Promise<void> {
    await sql(tx)`DELETE FROM oauth_artifacts WHERE model = ${model} AND id = ${id}`;
  }

  /** Ends a token at its client's word, and records that: one statement. */
  async revoke(
    tx: EntityManager,
    { model, id }: ArtifactKey,
    { auditId, origin, details }: TokenAudit,
  ): Promise<void> {
    await sql(tx)`
      WITH ended AS (
        DELETE FROM oauth_artifacts WHERE model = ${model} AND id = ${id} RETURNING user_id, client_id
      )
      INSERT INTO audit_events (id, type, class, subject_id, org_id, request_id, ip, user_agent, details)
      SELECT ${auditId}, 'oauth_token_revoked', 'oauth', e.user_id, coalesce(u.org_id, c.org_id), ${origin.requestId},
             ${origin.ip ?? null}, ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
      FROM ended e LEFT JOIN users u ON u.id = e.user_id LEFT JOIN oauth_clients c ON c.id = e.client_id`;
  }

  /** Removes every row of a model that hangs on a grant. */
  async destroyOfGrant(tx: EntityManager, model: string, grantId: Buffer): Promise<void> {
    await sql(tx)`DELETE FROM oauth_artifacts WHERE grant_id = ${grantId} AND model = ${model}`;
  }
}

function stored({ artifact, consumed, consumed_ago: consumedAgo, ...grant }: Row): StoredArtifact {
  return {
    payload: artifact,
    consumed: consumed ?? undefined,
    consumedAgo: consumedAgo ?? undefined,
    grant: isOfHolder(grant) ? liveGrant(grant) : undefined,
  };
}

function isOfHolder(grant: Partial<OwnedGrantRow>): grant is OwnedGrantRow {
  return grant.session_id !== null;
}

function keyOf({ model, id }: ArtifactKey): string {
  return `${model} ${id.toString('hex')}`;
}
