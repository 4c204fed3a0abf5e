/**
 * The artifacts of the OAuth library: codes, tokens, interactions and others. The end of a grant
 * deletes the artifacts that depend on it.
 */

import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import type { RowLocks } from '#domain/access/issuance/lock-order.repository.js';
import { artifactStands } from '#domain/access/issuance/standing-rows.repository.js';
import {
  byteaText,
  constantText,
  doneOf,
  fixedSql,
  fragment,
  inOrder,
  sql,
} from '#platform/database/statements/sql.js';
import type { Artifact, StoredArtifact } from './artifact.js';
import type { TokenAudit } from './tokens.repository.js';
import { liveGrant, type OwnedGrantRow } from './live-grant.js';

/** The key of an artifact's row: its kind in the OAuth library, and the hash of its id. */
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

/**
 * Finds artifacts, in the order of the given keys, each with its grant and the resource owner;
 * undefined for an artifact that does not exist. A database server that is not yet confirmed after
 * a failover gives no artifacts.
 */
export async function findArtifacts(
  tx: EntityManager,
  keys: readonly ArtifactKey[],
): Promise<(StoredArtifact | undefined)[]> {
  const rows = await sql<Row>(tx)`
    SELECT k.n::int, a.payload AS artifact, extract(epoch FROM a.consumed_at)::float8 AS consumed,
           extract(epoch FROM clock_timestamp() - a.consumed_at)::float8 AS consumed_ago, g.payload, g.expires_at <= now() AS is_over, h.user_id, h.org_id, h.email, h.name, h.is_org_admin,
           h.session_id, h.level, h.authenticator_id, h.aaguid, h.auth_time, h.amr, h.acr, h.expires_at, h.sid
    FROM unnest((SELECT ${keys.map(({ model }) => model)}::text[]), (SELECT ${keys.map(({ id }) => id)}::bytea[]))
      WITH ORDINALITY AS k (model, id, n)
    JOIN oauth_artifacts a ON a.model = k.model AND a.id = k.id
    LEFT JOIN (oauth_grants g JOIN oauth_holders h ON h.session_id = g.session_id) ON g.id = a.grant_id
    WHERE ${CONFIRMED} AND ${artifactStands(fragment`a`)}`;
  return inOrder(keys.length, rows, stored);
}

/**
 * Writes new and existing artifacts. If `locks` is `skip`, which is for a batch of several
 * requests, the statement does not wait for row locks. It then leaves out an artifact if another
 * transaction has locked its row, or a row that it refers to. If an artifact is in such a batch
 * twice, the first one is written.
 *
 * @returns for each artifact, true if it was written; a call with `wait` may still write an
 *   artifact that a call with `skip` left out
 * @throws QueryFailedError with SQLSTATE 23503 (foreign key violation) if `locks` is `wait` and an
 *   artifact refers to a row that does not exist any more
 */
export async function upsertArtifacts(
  tx: EntityManager,
  artifacts: readonly Artifact[],
  locks: RowLocks,
): Promise<boolean[]> {
  const rows = artifacts.map((artifact, n) => ({
    n,
    model: artifact.model,
    id: byteaText(artifact.id),
    payload: artifact.payload,
    grant_id: artifact.grantId && byteaText(artifact.grantId),
    client_id: artifact.clientId,
    user_id: artifact.userId,
    user_code: artifact.userCode,
    expires_in: artifact.expiresIn,
  }));
  const written = await fixedSql<{ n: number }>(tx, UPSERTS[locks], [JSON.stringify(rows)]);
  return doneOf(artifacts, written);
}

/**
 * Deletes at most `most` expired artifacts of any kind, the oldest expiry first. Rows that another
 * transaction has locked are skipped, so that this statement waits for no lock.
 */
export async function removeExpiredArtifacts(tx: EntityManager, most: number): Promise<void> {
  await sql(tx)`
    DELETE FROM oauth_artifacts WHERE (model, id) IN (
      SELECT model, id FROM oauth_artifacts WHERE expires_at < now() ORDER BY expires_at LIMIT ${most}
      FOR UPDATE SKIP LOCKED)`;
}

/**
 * Marks artifacts as consumed, so that each is used once. For each artifact, exactly one caller
 * gets true. A consumed row stays, so that a second use is noticed. If `locks` is `skip`, which is
 * for a batch, the statement waits for no lock. It then leaves out a row that another transaction
 * has locked.
 */
export async function consumeArtifacts(
  tx: EntityManager,
  keys: readonly ArtifactKey[],
  locks: RowLocks,
): Promise<boolean[]> {
  const asked = [keys.map(({ model }) => model), keys.map(({ id }) => id)];
  const won = await fixedSql<ArtifactKey>(tx, CONSUMPTIONS[locks], asked);
  const winners = new Set(won.map(keyOf));
  return keys.map((key) => winners.delete(keyOf(key)));
}

/**
 * Makes a consumed artifact usable again, because the request that used it got no token. Nothing
 * happens if the artifact was deleted with its grant.
 */
export async function releaseArtifact(
  tx: EntityManager,
  { model, id }: ArtifactKey,
): Promise<void> {
  await sql(tx)`
    UPDATE oauth_artifacts SET consumed_at = NULL WHERE model = ${model} AND id = ${id}`;
}

/**
 * Keeps the row of an artifact for at least some seconds from now. The artifact itself may expire
 * earlier, by the time in its payload.
 */
export async function keepArtifact(
  tx: EntityManager,
  { model, id }: ArtifactKey,
  seconds: number,
): Promise<void> {
  await sql(tx)`
    UPDATE oauth_artifacts SET expires_at = greatest(expires_at, now() + make_interval(secs => ${seconds}))
    WHERE model = ${model} AND id = ${id}`;
}

/** Deletes an artifact. Returns false if there is no such artifact. */
export async function destroyArtifact(
  tx: EntityManager,
  { model, id }: ArtifactKey,
): Promise<boolean> {
  const destroyed = await sql<{ model: string }>(tx)`
    DELETE FROM oauth_artifacts WHERE model = ${model} AND id = ${id} RETURNING model`;
  return destroyed.length === 1;
}

/**
 * Deletes a token because its client revokes it (RFC 7009), and records the audit event in the same
 * statement.
 */
export async function revokeArtifact(
  tx: EntityManager,
  { model, id }: ArtifactKey,
  { auditId, origin, details }: TokenAudit,
): Promise<void> {
  await sql(tx)`
    WITH ended AS (
      DELETE FROM oauth_artifacts WHERE model = ${model} AND id = ${id} RETURNING user_id, client_id
    )
    ${recordAudit(
      {
        id: auditId,
        type: 'oauth_token_revoked',
        subjectId: fragment`e.user_id`,
        orgId: fragment`coalesce(u.org_id, c.org_id)`,
        origin,
        details,
      },
      fragment`
        FROM ended e LEFT JOIN users u ON u.id = e.user_id LEFT JOIN oauth_clients c ON c.id = e.client_id`,
    )}`;
}

/** Deletes every artifact of one kind (model) that depends on a grant. */
export async function destroyArtifactsOfGrant(
  tx: EntityManager,
  model: string,
  grantId: Buffer,
): Promise<void> {
  await sql(tx)`DELETE FROM oauth_artifacts WHERE grant_id = ${grantId} AND model = ${model}`;
}

/**
 * The SQL that finds the artifacts of a batch that can be written without waiting. Their user,
 * client and grant must exist, and another transaction must have locked neither these nor the
 * artifact's own row.
 */
const UNLOCKED = fragment`
  account AS MATERIALIZED (
    SELECT id FROM users WHERE id = ANY (ARRAY(SELECT user_id FROM asked)) FOR KEY SHARE SKIP LOCKED
  ), client AS MATERIALIZED (
    SELECT id FROM oauth_clients WHERE id = ANY (ARRAY(SELECT client_id FROM asked)) FOR KEY SHARE SKIP LOCKED
  ), granted AS MATERIALIZED (
    SELECT id FROM oauth_grants WHERE id = ANY (ARRAY(SELECT grant_id FROM asked)) FOR KEY SHARE SKIP LOCKED
  ), held AS MATERIALIZED (
    SELECT a.model, a.id FROM asked k JOIN oauth_artifacts a ON a.model = k.model AND a.id = k.id
    FOR NO KEY UPDATE OF a SKIP LOCKED
  ), free AS MATERIALIZED (
    SELECT k.* FROM asked k
    WHERE (k.user_id IS NULL OR k.user_id IN (SELECT id FROM account))
      AND (k.client_id IS NULL OR k.client_id IN (SELECT id FROM client))
      AND (k.grant_id IS NULL OR k.grant_id IN (SELECT id FROM granted))
      AND ((k.model, k.id) IN (SELECT model, id FROM held)
           OR NOT EXISTS (SELECT 1 FROM oauth_artifacts a WHERE a.model = k.model AND a.id = k.id))
      AND NOT EXISTS (SELECT 1 FROM asked o WHERE o.model = k.model AND o.id = k.id AND o.n < k.n)
  )`;

const UPSERTS = { wait: upsertText('wait'), skip: upsertText('skip') };
const CONSUMPTIONS = { wait: consumptionText('wait'), skip: consumptionText('skip') };

function upsertText(locks: RowLocks): string {
  return constantText(fragment`
    WITH asked AS MATERIALIZED (
      SELECT k.* FROM jsonb_to_recordset($1::jsonb) AS k (
        n int, model text, id bytea, payload jsonb, grant_id bytea, client_id text, user_id uuid, user_code text,
        expires_in int)
    ), ${locks === 'skip' ? UNLOCKED : fragment`free AS (SELECT k.* FROM asked k)`}, written AS (
      INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, user_code, expires_at)
      SELECT k.model, k.id, k.payload, k.grant_id, k.client_id, k.user_id, k.user_code,
             now() + make_interval(secs => k.expires_in)
      FROM free k ORDER BY k.model, k.id
      ON CONFLICT (model, id) DO UPDATE SET
        payload = EXCLUDED.payload, grant_id = EXCLUDED.grant_id, user_id = EXCLUDED.user_id,
        expires_at = EXCLUDED.expires_at
    )
    SELECT n FROM free`);
}

function consumptionText(locks: RowLocks): string {
  return constantText(fragment`
    WITH free AS MATERIALIZED (
      SELECT a.model, a.id FROM unnest((SELECT $1::text[]), (SELECT $2::bytea[])) AS k (model, id)
      JOIN oauth_artifacts a ON a.model = k.model AND a.id = k.id
      WHERE a.consumed_at IS NULL
      FOR NO KEY UPDATE OF a ${locks === 'skip' ? fragment`SKIP LOCKED` : fragment``}
    )
    UPDATE oauth_artifacts a SET consumed_at = now() FROM free f
    WHERE a.model = f.model AND a.id = f.id AND a.consumed_at IS NULL
    RETURNING a.model, a.id`);
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
