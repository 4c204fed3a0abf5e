import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { inOrder, sql } from '#platform/database/sql.js';
import type { Artifact, StoredArtifact } from './artifact.js';

/** Which row: the library's model, and the hash of its id. */
export interface ArtifactKey {
  readonly model: string;
  readonly id: Buffer;
}

/** What the audit log keeps of a token. */
export interface TokenAudit {
  readonly auditId: string;
  readonly origin: AuditOrigin;
  readonly details: object;
}

interface Row {
  n: number;
  payload: Record<string, unknown>;
  consumed: string | null;
}

/** Codes, tokens and whatever else the OAuth library keeps: rows that are gone with the grant they hang on. */
@Injectable()
export class ArtifactsRepository {
  /** The rows of some keys, in the order of the keys. */
  async find(
    tx: EntityManager,
    keys: readonly ArtifactKey[],
  ): Promise<(StoredArtifact | undefined)[]> {
    const rows = await sql<Row>(tx)`
      SELECT k.n::int, a.payload, extract(epoch FROM a.consumed_at)::bigint AS consumed
      FROM unnest(${keys.map(({ model }) => model)}::text[], ${keys.map(({ id }) => id)}::bytea[])
        WITH ORDINALITY AS k (model, id, n)
      JOIN oauth_artifacts a ON a.model = k.model AND a.id = k.id`;
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
   * Records a token of a person, and its audit row, or nothing: one statement. It takes the user row FOR SHARE, then the
   * session row, the order in which de-provisioning takes them; whichever comes second sees what the first did.
   *
   * @returns false when the account is inactive, or the session or the grant is gone
   */
  async issueToPerson(
    tx: EntityManager,
    { model, id, payload, grantId, clientId, userId, expiresIn }: Artifact,
    { auditId, origin, details }: TokenAudit,
  ): Promise<boolean> {
    const issued = await sql<{ user_id: string }>(tx)`
      WITH account AS MATERIALIZED (
        SELECT id, org_id FROM users WHERE id = ${userId} AND active FOR SHARE
      ), live AS MATERIALIZED (
        SELECT g.id AS grant_id, a.id AS user_id, a.org_id
        FROM account a JOIN oauth_grants g ON g.user_id = a.id JOIN sessions s ON s.id = g.session_id
        WHERE g.id = ${grantId} AND s.expires_at > now()
        FOR SHARE OF s
      ), issued AS (
        INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, expires_at)
        SELECT ${model}, ${id}, ${JSON.stringify(payload)}::jsonb, grant_id, ${clientId}, user_id,
               now() + make_interval(secs => ${expiresIn})
        FROM live
        RETURNING user_id
      )
      INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details)
      SELECT ${auditId}, 'oauth_token_issued', 'oauth', l.user_id, l.user_id, l.org_id, ${origin.requestId},
             ${origin.ip ?? null}, ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
      FROM live l JOIN issued i ON i.user_id = l.user_id
      RETURNING subject_id AS user_id`;
    return issued.length === 1;
  }

  /**
   * Records a token of a client's own, and its audit row: one statement. It takes the row of the client's owner first, as
   * de-provisioning does.
   *
   * @returns false when the client is gone, or its owner is inactive or may be issued nothing under their address
   */
  async issueToClient(
    tx: EntityManager,
    { model, id, payload, clientId, expiresIn }: Artifact,
    { auditId, origin, details }: TokenAudit,
  ): Promise<boolean> {
    const issued = await sql<{ id: string }>(tx)`
      WITH owner AS MATERIALIZED (
        SELECT u.id FROM oauth_clients c JOIN users u ON u.id = c.owner_id
        WHERE c.id = ${clientId} AND u.active AND is_own_address(u.org_id, u.email) FOR SHARE OF u
      ), client AS MATERIALIZED (
        SELECT c.id, c.org_id FROM (SELECT count(*) FROM owner) first
        JOIN oauth_clients c ON c.id = ${clientId} AND (c.owner_id IS NULL OR c.owner_id IN (SELECT id FROM owner))
        FOR KEY SHARE OF c
      ), issued AS (
        INSERT INTO oauth_artifacts (model, id, payload, client_id, expires_at)
        SELECT ${model}, ${id}, ${JSON.stringify(payload)}::jsonb, id, now() + make_interval(secs => ${expiresIn})
        FROM client
        RETURNING client_id
      )
      INSERT INTO audit_events (id, type, class, org_id, request_id, ip, user_agent, details)
      SELECT ${auditId}, 'oauth_token_issued', 'oauth', c.org_id, ${origin.requestId}, ${origin.ip ?? null},
             ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
      FROM client c JOIN issued i ON i.client_id = c.id
      RETURNING id`;
    return issued.length === 1;
  }

  /**
   * {@link issueToClient} for many at once, in the order they are asked for. It waits for nobody: where somebody holds a lock
   * on what is behind a token, that one is not issued here.
   *
   * @returns whether each was issued; one that was not may still be, by itself
   */
  async issueToClients(
    tx: EntityManager,
    issues: readonly { readonly token: Artifact; readonly audit: TokenAudit }[],
  ): Promise<boolean[]> {
    const asked = issues.map(({ token, audit: { auditId, origin, details } }, n) => ({
      n,
      model: token.model,
      id: token.id.toString('hex'),
      payload: token.payload,
      client_id: token.clientId,
      expires_in: token.expiresIn,
      audit_id: auditId,
      request_id: origin.requestId,
      ip: origin.ip,
      user_agent: origin.userAgent,
      details,
    }));
    const issued = await sql<{ n: number }>(tx)`
      WITH asked AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) AS k (
          n int, model text, id text, payload jsonb, client_id text, expires_in int, audit_id uuid, request_id text, ip inet,
          user_agent text, details jsonb)
      ), owner AS MATERIALIZED (
        SELECT u.id FROM oauth_clients c JOIN users u ON u.id = c.owner_id
        WHERE c.id IN (SELECT client_id FROM asked) AND u.active AND is_own_address(u.org_id, u.email)
        FOR SHARE OF u SKIP LOCKED
      ), client AS MATERIALIZED (
        SELECT c.id, c.org_id FROM (SELECT count(*) FROM owner) first
        JOIN oauth_clients c ON c.id IN (SELECT client_id FROM asked)
          AND (c.owner_id IS NULL OR c.owner_id IN (SELECT id FROM owner))
        FOR KEY SHARE OF c SKIP LOCKED
      ), issued AS (
        INSERT INTO oauth_artifacts (model, id, payload, client_id, expires_at)
        SELECT k.model, decode(k.id, 'hex'), k.payload, c.id, now() + make_interval(secs => k.expires_in)
        FROM asked k JOIN client c ON c.id = k.client_id
      ), audited AS (
        INSERT INTO audit_events (id, type, class, org_id, request_id, ip, user_agent, details)
        SELECT k.audit_id, 'oauth_token_issued', 'oauth', c.org_id, k.request_id, k.ip, k.user_agent, k.details
        FROM asked k JOIN client c ON c.id = k.client_id
      )
      SELECT k.n FROM asked k JOIN client c ON c.id = k.client_id`;
    const done = new Set(issued.map(({ n }) => n));
    return issues.map((_, n) => done.has(n));
  }

  /** Consumes a row: true for exactly one caller. One that is consumed stays, so that its second use is seen. */
  async consume(tx: EntityManager, { model, id }: ArtifactKey): Promise<boolean> {
    const won = await sql<{ model: string }>(tx)`
      UPDATE oauth_artifacts SET consumed_at = now()
      WHERE model = ${model} AND id = ${id} AND consumed_at IS NULL
      RETURNING model`;
    return won.length === 1;
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

function stored({ payload, consumed }: Row): StoredArtifact {
  return { payload, consumed: consumed === null ? undefined : Number(consumed) };
}
