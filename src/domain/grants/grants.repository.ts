import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { inOrder, sql } from '#platform/database/statements/sql.js';
import type { ResourceOwner } from './resource-owner.js';
import {
  resourceOwner,
  liveGrant,
  type OwnedGrantRow,
  type ResourceOwnerRow,
  type LiveGrant,
} from './live-grant.js';

/** A grant as it is kept: of whom, to which client, on which session. */
export interface GrantRow {
  readonly id: Buffer;
  readonly clientId: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly payload: object;
  /** Seconds from now; the session ends it in any case. */
  readonly expiresIn: number;
}

/** A grant that a token exchange makes under the grant of the subject token. */
export interface ChildGrantRow extends GrantRow {
  readonly parentId: Buffer;
}

/** Seconds: longer than any token takes to be issued. */
const ENDS_SOON = 5;

/** Grants: what a person allows a client, for as long as the session lasts in which they allowed it. */
@Injectable()
export class GrantsRepository {
  /**
   * Writes a grant, on a live session that is more than a sign-in upstream, of an active user. The user row is locked
   * first, then the client's, then the session's: the order of de-provisioning, and of the end of a client, which takes its
   * sessions along.
   *
   * @returns false when there is no such session or client any more
   */
  async upsert(tx: EntityManager, grant: GrantRow): Promise<boolean> {
    const written = await sql<{ client_id: string }>(tx)`
      WITH account AS MATERIALIZED (
        SELECT id FROM users WHERE id = ${grant.userId} AND active FOR SHARE
      ), client AS MATERIALIZED (
        SELECT c.id FROM (SELECT count(*) FROM account) first JOIN oauth_clients c ON c.id = ${grant.clientId}
        FOR KEY SHARE OF c
      ), live AS MATERIALIZED (
        SELECT s.id AS session_id, a.id AS user_id, c.id AS client_id
        FROM account a CROSS JOIN client c JOIN sessions s ON s.user_id = a.id
        WHERE s.id = ${grant.sessionId} AND s.level <> 'bootstrap' AND s.expires_at > now()
        FOR SHARE OF s
      )
      INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
      SELECT ${grant.id}, client_id, user_id, session_id, ${JSON.stringify(grant.payload)}::jsonb,
             now() + make_interval(secs => ${grant.expiresIn})
      FROM live
      ON CONFLICT (id) DO UPDATE SET payload = EXCLUDED.payload
      RETURNING client_id`;
    return written.length === 1;
  }

  /**
   * {@link upsert} for many new grants at once. It waits for nobody: where somebody holds a lock on what is behind a grant,
   * that one is not written here.
   *
   * @returns whether each was written; one that was not may still be, by itself
   */
  async insertMany(tx: EntityManager, grants: readonly GrantRow[]): Promise<boolean[]> {
    const asked = grants.map(({ id, clientId, userId, sessionId, payload, expiresIn }) => ({
      id: id.toString('hex'),
      client_id: clientId,
      user_id: userId,
      session_id: sessionId,
      payload,
      expires_in: expiresIn,
    }));
    const written = await sql<{ id: string }>(tx)`
      WITH asked AS MATERIALIZED (
        SELECT decode(k.id, 'hex') AS id, k.client_id, k.user_id, k.session_id, k.payload, k.expires_in
        FROM jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) AS k (
          id text, client_id text, user_id uuid, session_id uuid, payload jsonb, expires_in int)
      ), account AS MATERIALIZED (
        SELECT id FROM users WHERE id IN (SELECT user_id FROM asked) AND active FOR SHARE SKIP LOCKED
      ), live AS MATERIALIZED (
        SELECT s.id AS session_id, a.id AS user_id FROM account a JOIN sessions s ON s.user_id = a.id
        WHERE s.id IN (SELECT session_id FROM asked) AND s.level <> 'bootstrap' AND s.expires_at > now()
        FOR SHARE OF s SKIP LOCKED
      ), client AS MATERIALIZED (
        SELECT id FROM oauth_clients WHERE id IN (SELECT client_id FROM asked) FOR KEY SHARE SKIP LOCKED
      )
      INSERT INTO oauth_grants (id, client_id, user_id, session_id, payload, expires_at)
      SELECT k.id, c.id, l.user_id, l.session_id, k.payload, now() + make_interval(secs => k.expires_in)
      FROM asked k JOIN live l ON l.session_id = k.session_id AND l.user_id = k.user_id JOIN client c ON c.id = k.client_id
      ORDER BY k.id
      ON CONFLICT (id) DO NOTHING
      RETURNING encode(id, 'hex') AS id`;
    const winners = new Set(written.map(({ id }) => id));
    return asked.map(({ id }) => winners.delete(id));
  }

  /**
   * Writes a grant under another: it ends no later than its parent. The parent's row is locked after that of the session, against
   * its end as well as against {@link endSoon}: whichever comes second sees what the first did.
   *
   * @returns false when the account, the client, the session or the parent is gone or over
   */
  async insertChild(tx: EntityManager, grant: ChildGrantRow): Promise<boolean> {
    const written = await sql<{ client_id: string }>(tx)`
      WITH account AS MATERIALIZED (
        SELECT id FROM users WHERE id = ${grant.userId} AND active FOR SHARE
      ), client AS MATERIALIZED (
        SELECT c.id FROM (SELECT count(*) FROM account) first JOIN oauth_clients c ON c.id = ${grant.clientId}
        FOR KEY SHARE OF c
      ), live AS MATERIALIZED (
        SELECT s.id AS session_id, a.id AS user_id, c.id AS client_id
        FROM account a CROSS JOIN client c JOIN sessions s ON s.user_id = a.id
        WHERE s.id = ${grant.sessionId} AND s.level <> 'bootstrap' AND s.expires_at > now()
        FOR SHARE OF s
      ), parent AS MATERIALIZED (
        SELECT p.id, least(p.expires_at, now() + make_interval(secs => ${grant.expiresIn})) AS expires_at,
               l.session_id, l.user_id, l.client_id
        FROM live l JOIN oauth_grants p ON p.id = ${grant.parentId} AND p.session_id = l.session_id
        WHERE p.expires_at > now()
        FOR SHARE OF p
      )
      INSERT INTO oauth_grants (id, parent_id, client_id, user_id, session_id, payload, expires_at)
      SELECT ${grant.id}, p.id, p.client_id, p.user_id, p.session_id,
             ${JSON.stringify(grant.payload)}::jsonb || jsonb_build_object('exp', floor(extract(epoch FROM p.expires_at))::bigint),
             p.expires_at
      FROM parent p
      RETURNING client_id`;
    return written.length === 1;
  }

  /** The grants of some ids, in their order, with who is behind each, if they may still be issued anything. */
  async find(tx: EntityManager, ids: readonly Buffer[]): Promise<(LiveGrant | undefined)[]> {
    const rows = await sql<OwnedGrantRow & { n: number }>(tx)`
      SELECT k.n::int, g.payload, g.expires_at <= now() AS is_over, h.user_id, h.org_id, h.email, h.name, h.is_org_admin,
             h.session_id, h.level, h.authenticator_id, h.aaguid, h.auth_time, h.amr, h.acr, h.expires_at
      FROM unnest(${ids}::bytea[]) WITH ORDINALITY AS k (id, n)
      JOIN oauth_grants g ON g.id = k.id JOIN oauth_holders h ON h.session_id = g.session_id`;
    return inOrder(ids.length, rows, liveGrant);
  }

  /** What a client was granted in a session since it last changed, one payload a grant. */
  async listOfSession(
    tx: EntityManager,
    sessionId: string,
    clientId: string,
  ): Promise<Record<string, unknown>[]> {
    const rows = await sql<{ payload: Record<string, unknown> }>(tx)`
      SELECT g.payload FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id
      WHERE g.session_id = ${sessionId} AND g.client_id = ${clientId} AND g.expires_at > now()
        AND g.created_at > c.updated_at`;
    return rows.map(({ payload }) => payload);
  }

  /** Ends a grant, and every code and token that hangs on it, those of its children too. */
  async destroy(tx: EntityManager, id: Buffer): Promise<void> {
    await sql(tx)`DELETE FROM oauth_grants WHERE id = ${id}`;
  }

  /**
   * Ends what was exchanged under a grant, and leaves the grant itself. Run it in a transaction: the grant's row is locked first,
   * after that of its session, so that a child which is being made is either seen here or refused.
   */
  async destroyChildren(tx: EntityManager, id: Buffer): Promise<void> {
    await sql(tx)`
      SELECT s.id FROM sessions s JOIN oauth_grants g ON g.session_id = s.id WHERE g.id = ${id} FOR SHARE OF s`;
    await sql(tx)`SELECT id FROM oauth_grants WHERE id = ${id} FOR NO KEY UPDATE`;
    await sql(tx)`DELETE FROM oauth_grants WHERE parent_id = ${id}`;
  }

  /**
   * Ends a grant in a few seconds at most, and its children with it: for a secret of it that came twice at once. The
   * first request gets its answer, and what it got ends with the grant. Run it in a transaction: each generation is looked up once
   * the one before is locked, so that no child is missed which is being made meanwhile.
   */
  async endSoon(tx: EntityManager, id: Buffer): Promise<void> {
    for (let ending = await this.#endSoon(tx, [id]); ending.length > 0;) {
      const children = await sql<{ id: Buffer }>(tx)`
        SELECT id FROM oauth_grants WHERE parent_id = ANY (${ending}::bytea[]) ORDER BY id`;
      ending = await this.#endSoon(
        tx,
        children.map((child) => child.id),
      );
    }
  }

  async #endSoon(tx: EntityManager, ids: readonly Buffer[]): Promise<Buffer[]> {
    if (ids.length === 0) return [];
    const ending = await sql<{ id: Buffer }>(tx)`
      UPDATE oauth_grants
      SET expires_at = least(expires_at, now() + make_interval(secs => ${ENDS_SOON})),
          payload = jsonb_set(payload, '{exp}', to_jsonb(least((payload ->> 'exp')::bigint,
            floor(extract(epoch FROM now()))::bigint + ${ENDS_SOON})))
      WHERE id = ANY (${ids}::bytea[])
      RETURNING id`;
    return ending.map((grant) => grant.id);
  }

  /** Who is behind a session, if they may be issued anything. */
  async resourceOwnerOfSession(
    tx: EntityManager,
    sessionId: string,
  ): Promise<ResourceOwner | undefined> {
    const [row] = await sql<ResourceOwnerRow>(tx)`
      SELECT h.user_id, h.org_id, h.email, h.name, h.is_org_admin, h.session_id, h.level, h.authenticator_id, h.aaguid,
             h.auth_time, h.amr, h.acr, h.expires_at
      FROM oauth_holders h WHERE h.session_id = ${sessionId}`;
    return row && resourceOwner(row);
  }

  /**
   * Who is behind the sessions of some browsers, by the hashes of their own tokens, in that order: hardware-verified or
   * synthetic, never one that is signed in upstream alone, and never one of svc-cli.
   */
  async resourceOwnersOfBrowsers(
    tx: EntityManager,
    tokenHashes: readonly Buffer[],
  ): Promise<(ResourceOwner | undefined)[]> {
    const rows = await sql<ResourceOwnerRow & { n: number }>(tx)`
      SELECT k.n::int, h.user_id, h.org_id, h.email, h.name, h.is_org_admin, h.session_id, h.level, h.authenticator_id,
             h.aaguid, h.auth_time, h.amr, h.acr, h.expires_at
      FROM unnest(${tokenHashes}::bytea[]) WITH ORDINALITY AS k (token_hash, n)
      JOIN oauth_holders h ON h.token_hash = k.token_hash
      WHERE h.session_client IS NULL`;
    return inOrder(tokenHashes.length, rows, resourceOwner);
  }

  /**
   * The same, as it is once the row of the account is locked FOR SHARE: what is issued to them in this transaction comes
   * before their de-provisioning, which takes the row first, or not at all.
   */
  async lockResourceOwnerOfBrowser(
    tx: EntityManager,
    userId: string,
    tokenHash: Buffer,
  ): Promise<ResourceOwner | undefined> {
    await sql(tx)`SELECT id FROM users WHERE id = ${userId} FOR SHARE`;
    const [found] = await this.resourceOwnersOfBrowsers(tx, [tokenHash]);
    return found;
  }
}
