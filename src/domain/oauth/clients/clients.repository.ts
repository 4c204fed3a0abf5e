import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  BY_DELETED_ROW,
  idsOf,
  type LockedUser,
  type Revocable,
  type RevocationScope,
  type RevokedCounts,
  withoutZeros,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import { newUuid } from '#platform/clock/random.js';
import { fragment, inOrder, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import { countRows, endIssuedBefore, retireClient } from './ended-clients.repository.js';

/**
 * The origin of a client: it is a part of this product, a user registered it, or it registered
 * itself (RFC 7591). A Kubernetes cluster is no client, although it has a row in the same table.
 */
export type ClientKind = 'first-party' | 'application' | 'dynamic';

/**
 * A row of the table `oauth_clients` for a client. Clusters, which the table also has, are left
 * out.
 */
export interface ClientRow {
  readonly id: string;
  readonly kind: ClientKind;
  /** The client metadata of RFC 7591 §2, without a secret. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly ownerId: string | null;
  readonly orgId: string | null;
}

/** A client with the hashes of its valid secrets. */
export interface LiveClient extends ClientRow {
  readonly secretHashes: readonly Buffer[];
  readonly isUsedToday: boolean;
  /**
   * The redirect URIs for which an admin approved the application for all members; null without an
   * approval.
   */
  readonly approvedUris: readonly string[] | null;
  /**
   * True if an admin allowed the application to receive security events about users (Shared
   * Signals).
   */
  readonly receivesSignals: boolean;
}

/** The facts about a valid secret of a client. The secret itself is not stored. */
export interface ClientSecret {
  readonly id: string;
  readonly createdAt: Date;
  /** The expiry of the secret; null if it never expires. */
  readonly expiresAt: Date | null;
}

/** A secret of a client that expires soon, because a newer secret replaces it. */
export interface EndingSecret {
  readonly id: string;
  readonly endsAt: Date;
}

/** The number of valid tokens of a client, and the number of users who signed in to it. */
export interface ClientAccess {
  readonly tokens: number;
  readonly users: number;
}

/**
 * The most rows, such as grants, that one statement deletes with their client. It takes about a
 * second for this number, and its time limit is 10 s.
 */
const MOST_AT_ONCE = 20_000;

/** The days after which a client that registered itself expires if it is not used. */
export const DYNAMIC_CLIENT_DAYS = 30;

interface Row {
  n: number;
  id: string;
  kind: ClientKind;
  metadata: Record<string, unknown>;
  owner_id: string | null;
  org_id: string | null;
  secret_hashes: Buffer[];
  used_today: boolean;
  approved_uris: string[] | null;
  receives_signals: boolean;
}

/** The SQL condition that a token `a` was issued to a client `c` itself, not for a user. */
const OF_ITSELF = fragment`a.client_id = c.id AND a.model = 'ClientCredentials'`;

const IS_VALID_TOKEN = fragment`a.expires_at > now()`;

/** Returns the SQL condition that a row of a client was made after the last end of its tokens. */
function isNewer(clientId: string): SqlFragment {
  return fragment`created_at > coalesce((SELECT ended_before FROM oauth_clients WHERE id = ${clientId}), '-infinity')`;
}

/** Stores OAuth clients and their secrets, and ends the tokens of clients. */
@Injectable()
export class ClientsRepository implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.applications;
  /**
   * The events at which {@link revoke} ends tokens. The event `account-deleted` is not among them,
   * because a foreign key deletes the applications together with the user.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set([
    'account-deactivated',
    'credentials-revoked',
    'domain-lost',
    'provider-withdrawn',
  ]);
  readonly endedByForeignKey = BY_DELETED_ROW;
  /**
   * Null, because the clients stay even if a failover of the database has lost commits. Their
   * tokens end together with the sessions.
   */
  readonly revokeOnRecord = null;

  /**
   * Finds clients, in the order of the given ids. The result is undefined for an unknown id, a
   * client with a deactivated owner, or a self-registered client that expired unused.
   */
  async findLive(tx: EntityManager, ids: readonly string[]): Promise<(LiveClient | undefined)[]> {
    const rows = await sql<Row>(tx)`
      SELECT k.n::int, c.id, c.kind, c.metadata, c.owner_id, c.org_id, c.approved_uris,
             c.last_used_at > now() - interval '1 day' AS used_today,
             EXISTS (SELECT FROM signal_receivers r WHERE r.client_id = c.id) AS receives_signals,
             ARRAY(SELECT s.hash FROM oauth_client_secrets s
                   WHERE s.client_id = c.id AND (s.expires_at IS NULL OR s.expires_at > now())
                   ORDER BY s.created_at DESC) AS secret_hashes
      FROM unnest((SELECT ${ids}::text[])) WITH ORDINALITY AS k (id, n)
      JOIN oauth_clients c ON c.id = k.id LEFT JOIN users u ON u.id = c.owner_id
      WHERE c.kind NOT IN ('kubernetes', 'removed') AND (c.owner_id IS NULL OR u.active)
        AND (c.kind <> 'dynamic' OR c.last_used_at > now() - make_interval(days => ${DYNAMIC_CLIENT_DAYS}))`;
    return inOrder(ids.length, rows, liveClient);
  }

  /**
   * Records that a client is used now. A client that registered itself then stays for
   * {@link DYNAMIC_CLIENT_DAYS} days more.
   */
  async touch(tx: EntityManager, id: string): Promise<void> {
    await sql(tx)`UPDATE oauth_clients SET last_used_at = now() WHERE id = ${id}`;
  }

  /**
   * Adds a client. An application that an admin of the organization registers is approved at once.
   */
  async insert(tx: EntityManager, client: ClientRow): Promise<void> {
    const metadata = JSON.stringify(client.metadata);
    await sql(tx)`
      INSERT INTO oauth_clients (id, kind, metadata, owner_id, org_id, approved_at, approved_by, approved_uris)
      SELECT ${client.id}::text, ${client.kind}::text, ${metadata}::jsonb, ${client.ownerId}::uuid, ${client.orgId}::uuid,
             CASE WHEN a.id IS NOT NULL THEN now() END, a.id,
             CASE WHEN a.id IS NOT NULL THEN ${redirectUrisOf(fragment`${metadata}::jsonb`)} END
      FROM (VALUES (1)) AS one LEFT JOIN users a
        ON a.id = ${client.ownerId}::uuid AND a.org_id = ${client.orgId}::uuid AND a.is_org_admin AND a.active
        AND ${client.kind}::text = 'application'`;
  }

  /** Replaces the metadata of a client. Returns false if there is no such client. */
  async update(tx: EntityManager, id: string, metadata: object): Promise<boolean> {
    const updated = await sql<{ id: string }>(tx)`
      UPDATE oauth_clients SET metadata = ${JSON.stringify(metadata)}, updated_at = now()
      WHERE id = ${id} AND kind <> 'removed' RETURNING id`;
    return updated.length === 1;
  }

  /**
   * Removes a client with its grants, codes and tokens. Those of a client with more than {@link
   * MOST_AT_ONCE} rows stop to count, and a background worker deletes the rows. Returns false if
   * there is no such client.
   */
  async remove(tx: EntityManager, id: string): Promise<boolean> {
    if (await this.isLarge(tx, id)) return retireClient(tx, id);
    const removed = await sql<{ id: string }>(tx)`
      DELETE FROM oauth_clients WHERE id = ${id} AND kind <> 'removed' RETURNING id`;
    return removed.length === 1;
  }

  /**
   * Returns true if more than {@link MOST_AT_ONCE} rows depend on a client, so that one statement
   * that deletes all of them could exceed its time limit.
   */
  async isLarge(tx: EntityManager, id: string): Promise<boolean> {
    return (await this.countRows(tx, id)) > MOST_AT_ONCE;
  }

  /** Counts the rows that depend on a client, up to a little more than {@link MOST_AT_ONCE}. */
  countRows(tx: EntityManager, id: string): Promise<number> {
    return countRows(tx, id, MOST_AT_ONCE);
  }

  /**
   * Stores the hash of a new secret of a client, and returns the id of the secret.
   *
   * @param days the days until the secret expires; null for a secret that never expires
   */
  async addSecret(
    tx: EntityManager,
    clientId: string,
    hash: Buffer,
    days: number | null = null,
  ): Promise<string> {
    const id = newUuid();
    await sql(tx)`
      INSERT INTO oauth_client_secrets (id, client_id, hash, expires_at)
      VALUES (${id}, ${clientId}, ${hash}, now() + make_interval(hours => 24 * ${days}::int))`;
    return id;
  }

  /** Lists the valid secrets of a client, the newest first. */
  async listSecrets(tx: EntityManager, clientId: string): Promise<ClientSecret[]> {
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

  /**
   * Makes all secrets of a client expire after some seconds, because a new secret replaces them,
   * and returns these secrets. If a secret expires earlier already, its expiry stays the same.
   */
  async retireSecrets(
    tx: EntityManager,
    clientId: string,
    seconds: number,
  ): Promise<readonly EndingSecret[]> {
    const retired = await sql<{ id: string; expires_at: Date }>(tx)`
      UPDATE oauth_client_secrets
      SET expires_at = least(expires_at, now() + make_interval(secs => ${seconds}))
      WHERE client_id = ${clientId} RETURNING id, expires_at`;
    return retired.map(({ id, expires_at: endsAt }) => ({ id, endsAt }));
  }

  /**
   * Sets the expiry of a secret again, because a failover of the database lost the commit that had
   * set it. Returns false if there is no such secret, or if it expires earlier already.
   */
  async endSecretAt(tx: EntityManager, clientId: string, id: string, at: Date): Promise<boolean> {
    const ended = await sql<{ id: string }>(tx)`
      UPDATE oauth_client_secrets SET expires_at = ${at}
      WHERE client_id = ${clientId} AND id = ${id} AND (expires_at IS NULL OR expires_at > ${at}) RETURNING id`;
    return ended.length === 1;
  }

  /** Deletes a secret. Returns false if there is no such valid secret. */
  async removeSecret(tx: EntityManager, clientId: string, id: string): Promise<boolean> {
    const revoked = await sql<{ id: string }>(tx)`
      DELETE FROM oauth_client_secrets
      WHERE id = ${id} AND client_id = ${clientId} AND (expires_at IS NULL OR expires_at > now())
      RETURNING id`;
    return revoked.length === 1;
  }

  /**
   * Deletes every secret of a client, because the client now authenticates in another way. Returns
   * their ids.
   */
  async removeSecrets(tx: EntityManager, clientId: string): Promise<string[]> {
    const removed = await sql<{ id: string }>(tx)`
      DELETE FROM oauth_client_secrets WHERE client_id = ${clientId} RETURNING id`;
    return removed.map(({ id }) => id);
  }

  /**
   * Locks the row of a user who registers an application. Two registrations of one user then run
   * one after another, so that they cannot exceed the limit of applications.
   *
   * @returns the organization of the user and the number of applications; undefined if the user is
   *   unknown, inactive, or not in the organization that owns the domain of the user's e-mail
   *   address
   */
  async lockOwner(
    tx: EntityManager,
    userId: string,
  ): Promise<{ readonly orgId: string | null; readonly applications: number } | undefined> {
    const [owner] = await sql<{ org_id: string | null }>(tx)`
      SELECT org_id FROM users WHERE id = ${userId} AND active AND is_own_address(org_id, email)
      FOR NO KEY UPDATE`;
    if (!owner) return undefined;
    const [counted] = await sql<{ n: number }>(tx)`
      SELECT count(*)::int AS n FROM oauth_clients WHERE owner_id = ${userId}`;
    return { orgId: owner.org_id, applications: counted?.n ?? 0 };
  }

  /**
   * Ends every grant, code and token of a client, and every token for a cluster. The grants end
   * first, in the same order of locks as in a transaction that ends the access of a user. So the
   * two transactions do not deadlock. A user with grants in several sessions may still cause a
   * deadlock; the caller then retries its transaction. The grants and tokens of a client with more
   * than {@link MOST_AT_ONCE} rows stop to count, and a background worker deletes the rows.
   *
   * @returns the number of tokens that were valid
   */
  async endTokens(tx: EntityManager, clientId: string): Promise<number> {
    const [good] = await sql<{ n: number }>(tx)`
      SELECT count(*)::int AS n FROM oauth_artifacts
      WHERE (client_id = ${clientId} OR application_id = ${clientId})
        AND model IN ('AccessToken', 'ClientCredentials') AND expires_at > now() AND ${isNewer(clientId)}`;
    if (await this.isLarge(tx, clientId)) {
      await endIssuedBefore(tx, clientId);
      return good?.n ?? 0;
    }
    await sql(tx)`DELETE FROM oauth_grants WHERE client_id = ${clientId}`;
    await sql(tx)`
      DELETE FROM oauth_artifacts WHERE client_id = ${clientId} OR application_id = ${clientId}`;
    return good?.n ?? 0;
  }

  /**
   * Counts the access that would end with a client: its valid tokens, and the users who signed in
   * to it.
   */
  async countAccess(tx: EntityManager, clientId: string): Promise<ClientAccess> {
    const [row] = await sql<ClientAccess>(tx)`
      SELECT (SELECT count(*)::int FROM oauth_artifacts
              WHERE (client_id = ${clientId} OR application_id = ${clientId})
                AND model IN ('AccessToken', 'ClientCredentials') AND expires_at > now()
                AND ${isNewer(clientId)}) AS tokens,
             (SELECT count(DISTINCT user_id)::int FROM oauth_grants
              WHERE client_id = ${clientId} AND expires_at > now() AND ${isNewer(clientId)}) AS users`;
    return row ?? { tokens: 0, users: 0 };
  }

  /**
   * Ends the tokens that the applications of some users got for themselves, not for a user, because
   * these users lose their access.
   */
  async revoke(tx: EntityManager, users: readonly LockedUser[]): Promise<RevokedCounts> {
    const ended = await sql<{ is_valid: boolean }>(tx)`
      DELETE FROM oauth_artifacts a USING oauth_clients c
      WHERE c.owner_id = ANY (${idsOf(users)}::uuid[]) AND ${OF_ITSELF} RETURNING ${IS_VALID_TOKEN} AS is_valid`;
    return withoutZeros({ tokens: ended.filter((token) => token.is_valid).length });
  }

  /**
   * Removes applications of some users before the rows of the users are deleted, so that the other
   * applications have at most {@link MOST_AT_ONCE} rows together. A foreign key then deletes these
   * in one statement.
   */
  async detach(tx: EntityManager, users: readonly LockedUser[]): Promise<void> {
    const owned = await sql<{ id: string }>(tx)`
      SELECT id FROM oauth_clients WHERE owner_id = ANY (${idsOf(users)}::uuid[]) ORDER BY id`;
    let kept = 0;
    for (const { id } of owned) {
      const rows = await this.countRows(tx, id);
      if (kept + rows > MOST_AT_ONCE) await retireClient(tx, id);
      else kept += rows;
    }
  }

  /** Counts the tokens that the applications of a user got for themselves, not for a user. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ tokens: number }>(tx)`
      SELECT count(*)::int AS tokens FROM oauth_artifacts a JOIN oauth_clients c ON ${OF_ITSELF}
      WHERE c.owner_id = ${id} AND ${IS_VALID_TOKEN}`;
    return { tokens: row?.tokens ?? 0 };
  }

  /** Counts the applications of a user, which are deleted together with the account. */
  async countByRow(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const [row] = await sql<{ applications: number }>(tx)`
      SELECT count(*)::int AS applications FROM oauth_clients WHERE owner_id = ${id}`;
    return { applications: row?.applications ?? 0 };
  }
}

/** Returns the SQL of the redirect URIs in a client's metadata, as a PostgreSQL array. */
export function redirectUrisOf(metadata: SqlFragment): SqlFragment {
  return fragment`ARRAY(SELECT jsonb_array_elements_text(coalesce(${metadata} -> 'redirect_uris', '[]')))`;
}

function liveClient(row: Row): LiveClient {
  return {
    id: row.id,
    kind: row.kind,
    metadata: row.metadata,
    ownerId: row.owner_id,
    orgId: row.org_id,
    secretHashes: row.secret_hashes,
    isUsedToday: row.used_today,
    approvedUris: row.approved_uris,
    receivesSignals: row.receives_signals,
  };
}
