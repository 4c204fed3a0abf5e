import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import {
  EVERY_SCOPE,
  type LockedUser,
  type Revocable,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import { sql } from '#platform/database/statements/sql.js';
import { accessToken } from './access-token.js';
import type { Assurance, LiveSession, SessionOrigin, SessionUser } from './session.js';

/** What a new session row holds beside its id and token. */
export type NewSession =
  | { readonly level: 'bootstrap'; readonly userId: string }
  | { readonly level: 'bootstrap'; readonly pendingIdentity: UpstreamIdentity }
  | (ProvenSession & { readonly level: 'verified'; readonly authenticatorId: string })
  /** Of certification test mode: it drives OAuth alone, and opens nothing of ours. */
  | (ProvenSession & { readonly level: 'synthetic' });

interface ProvenSession extends Assurance {
  readonly userId: string;
  readonly authTime: Date;
  /** The client whose own session this is, beside that of any browser; its token of a session is nobody's. */
  readonly clientId?: string;
}

interface Row {
  id: string;
  presented: Buffer;
  token_client: string | null;
  token_payload: Record<string, unknown> | null;
  level: 'bootstrap' | 'verified';
  expires_at: Date;
  pending_identity: UpstreamIdentity | null;
  authenticator_id: string | null;
  amr: string[];
  acr: string | null;
  auth_time: Date | null;
  user_id: string | null;
  org_id: string | null;
  email: string | null;
  name: string | null;
  is_acting_admin: boolean;
  aaguid: string | null;
  enrolled: boolean;
}

/** Session rows. A session exists exactly as long as its row. */
@Injectable()
export class SessionsRepository implements Revocable {
  readonly revocationOrder = 10;
  readonly revocationScopes = EVERY_SCOPE;

  /** Adds a session that ends `hours` from now. */
  async insert(
    tx: EntityManager,
    hours: number,
    session: NewSession & {
      readonly id: string;
      readonly tokenHash: Buffer;
      readonly from: SessionOrigin;
    },
  ): Promise<Date> {
    const { id, tokenHash, from } = session;
    const proven = session.level === 'bootstrap' ? undefined : session;
    const authenticatorId = session.level === 'verified' ? session.authenticatorId : null;
    const pending = 'pendingIdentity' in session ? session.pendingIdentity : null;
    const [row] = await sql<{ expires_at: Date }>(tx)`
      INSERT INTO sessions (id, token_hash, level, user_id, pending_identity, authenticator_id, client_id, amr, acr,
                            auth_time, ip, user_agent, expires_at)
      VALUES (${id}, ${tokenHash}, ${session.level}, ${'userId' in session ? session.userId : null},
              ${pending === null ? null : JSON.stringify(pending)}, ${authenticatorId},
              ${proven?.clientId ?? null}, ${proven?.amr ?? []}, ${proven?.acr ?? null}, ${proven?.authTime ?? null},
              ${from.ip ?? null}, ${from.userAgent ?? null}, now() + make_interval(hours => ${hours}))
      RETURNING expires_at`;
    if (!row) throw new Error('INSERT returned no row');
    return row.expires_at;
  }

  /**
   * The sessions of some tokens, by the base64url of their hashes: those that are alive and whose users may sign in. A
   * token is a browser session's own, or an OAuth access token whose grant hangs on the session. Synthetic sessions are
   * not found, nor what hangs on them.
   */
  async findLive(
    tx: EntityManager,
    tokenHashes: readonly Buffer[],
  ): Promise<Map<string, LiveSession>> {
    const rows = await sql<Row>(tx)`
      WITH known AS (
        SELECT token_hash AS presented, id AS session_id, NULL AS token_client, NULL::jsonb AS token_payload
        FROM sessions
        WHERE token_hash = ANY (${tokenHashes}) AND client_id IS NULL
        UNION ALL
        SELECT t.id, g.session_id, g.client_id, t.payload
        FROM oauth_artifacts t JOIN oauth_grants g ON g.id = t.grant_id AND g.client_id = t.client_id
        WHERE t.model = 'AccessToken' AND t.id = ANY (${tokenHashes}) AND t.consumed_at IS NULL
          AND t.expires_at > now() AND g.expires_at > now()
      )
      SELECT s.id, t.presented, t.token_client, t.token_payload, s.level, s.expires_at, s.pending_identity,
             s.authenticator_id, s.amr, s.acr, s.auth_time, s.user_id, u.org_id, u.email, u.name, a.aaguid,
             is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active) AS is_acting_admin,
             EXISTS (SELECT 1 FROM authenticators k WHERE k.user_id = s.user_id) AS enrolled
      FROM known t
      JOIN sessions s ON s.id = t.session_id
      LEFT JOIN users u ON u.id = s.user_id
      LEFT JOIN authenticators a ON a.id = s.authenticator_id
      WHERE s.level <> 'synthetic' AND s.expires_at > now() AND (s.user_id IS NULL OR u.active)`;
    return new Map(rows.map((row) => [row.presented.toString('base64url'), liveSession(row)]));
  }

  /** Ends a session; false when it had ended already. */
  async delete(tx: EntityManager, id: string): Promise<boolean> {
    const ended = await sql<{ id: string }>(tx)`
      DELETE FROM sessions WHERE id = ${id} AND expires_at > now() RETURNING id`;
    return ended.length === 1;
  }

  /** Keeps a session alive until the transaction ends; false when it had ended already. The row of its user comes first. */
  async hold(tx: EntityManager, id: string): Promise<boolean> {
    const held = await sql<{ id: string }>(tx)`
      SELECT id FROM sessions WHERE id = ${id} AND expires_at > now() FOR SHARE`;
    return held.length === 1;
  }

  /**
   * Ends every session of a user with the grants, codes and tokens on it, then the other records that the OAuth library keeps of
   * the user (an interaction, a browser session). Two statements: every path that ends a grant locks the grant before its codes
   * and tokens, and one statement would lock the codes and tokens first.
   */
  async revoke(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const ended = await sql<{ id: string }>(tx)`
      DELETE FROM sessions WHERE user_id = ${id} RETURNING id`;
    await sql(tx)`DELETE FROM oauth_artifacts WHERE user_id = ${id}`;
    return { sessions: ended.length };
  }

  /** Ends every session that no key stands behind, and all that hangs on one. */
  async deleteSynthetic(tx: EntityManager): Promise<void> {
    await sql(tx)`DELETE FROM sessions WHERE level = 'synthetic'`;
  }

  /** Renews the moment of the last assertion, and nothing else; false when the session is gone. */
  async renewAuthTime(tx: EntityManager, id: string, authTime: Date): Promise<boolean> {
    const renewed = await sql<{ id: string }>(tx)`
      UPDATE sessions SET auth_time = ${authTime}
      WHERE id = ${id} AND level = 'verified' AND expires_at > now()
      RETURNING id`;
    return renewed.length === 1;
  }
}

function liveSession(row: Row): LiveSession {
  const base = { id: row.id, expiresAt: row.expires_at };
  if (row.pending_identity) {
    return {
      ...base,
      level: 'bootstrap',
      user: null,
      pendingIdentity: row.pending_identity,
      enrolled: false,
    };
  }
  const user: SessionUser = {
    id: present(row.user_id),
    orgId: row.org_id,
    email: row.email,
    name: row.name,
    isOrgAdmin: row.is_acting_admin,
  };
  if (row.level === 'bootstrap') {
    return { ...base, level: 'bootstrap', user, pendingIdentity: null, enrolled: row.enrolled };
  }
  return {
    ...base,
    level: 'verified',
    user,
    pendingIdentity: null,
    enrolled: true,
    authenticatorId: present(row.authenticator_id),
    hardwareAaguid: row.aaguid,
    authTime: present(row.auth_time),
    amr: row.amr,
    acr: row.acr,
    accessToken:
      row.token_client === null ? null : accessToken(row.token_client, row.token_payload),
  };
}

/** What the table's CHECK constraints promise. */
function present<T>(value: T | null): T {
  if (value === null) throw new Error('a session row breaks its own constraint');
  return value;
}
