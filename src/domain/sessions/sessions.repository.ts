import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  newestNotice,
  type UnreadNotice,
} from '#domain/audit/notices/account-notices.repository.js';
import {
  EVERY_SCOPE,
  idsOf,
  withoutZeros,
  type CountOfKey,
  type EndedBatch,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import type { UpstreamIdentity } from '#domain/providers/upstream-identity.js';
import { lockUsers } from '#domain/access/issuance/lock-order.repository.js';
import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import {
  constantText,
  fixedSql,
  fragment,
  sql,
  type SqlFragment,
} from '#platform/database/statements/sql.js';
import { accessToken } from './access-token.js';
import { LIVE_ACCESS_TOKEN, type LookedUpToken } from './remembered/token-check.repository.js';
import type { KeyTouch } from '#domain/access/reach/decision.js';
import { AAL3, sessionLifetime } from './session.js';
import type { Assurance, LiveSession, OwnSession, SessionOrigin, SessionUser } from './session.js';

/** The SQL of the newest notice that the user of a session `s` has not read. */
const NEWEST_NOTICE = newestNotice(fragment`s.user_id`);

/** The most sessions that the list of a user shows, the newest first. */
const MOST_SHOWN = 500;

/**
 * The most bootstrap sessions that a user keeps. Each sign-in at the identity provider opens one,
 * without any touch of a key, so that a program could open 100,000 in a day. One statement ends all
 * sessions of a user whose access ends. With so many it would exceed its time limit, and the user
 * could not be removed.
 */
const MOST_BOOTSTRAP = 100;

/**
 * The most older bootstrap sessions that a new one ends, so that a user with very many from an
 * earlier version of this service can still sign in.
 */
const MOST_TRIMMED = 1_000;

/** The values of a new session, except its id and token. */
export type NewSession =
  | { readonly level: 'bootstrap'; readonly userId: string }
  | { readonly level: 'bootstrap'; readonly pendingIdentity: UpstreamIdentity }
  | (ProvenSession & {
      readonly level: 'verified';
      readonly authenticatorId: string;
      /** True if the key is of a FIPS-certified model, which a `packed` attestation proved. */
      readonly isFipsKey?: boolean;
    })
  /**
   * A session of certification test mode, in which a conformance test of OAuth logs in without a
   * key. It works for OAuth only, and for no page or API of the service.
   */
  | (ProvenSession & { readonly level: 'synthetic' });

interface ProvenSession extends Assurance {
  readonly userId: string;
  /** The time at which the security key signed; the present time if it is missing. */
  readonly authTime?: Date;
  /**
   * The id of the client to which the session belongs alone, separate from any browser session. The
   * client uses the session by its OAuth access tokens, and never gets the own token of the
   * session.
   */
  readonly clientId?: string;
  /**
   * True if an approved device code opens the session. Such a session lasts at most an hour ({@link
   * sessionLifetime}) and never satisfies a demand for a recent touch.
   */
  readonly isOfDevice?: boolean;
}

/** The security key that was touched, and what the touch proved. */
export interface TouchedKey extends Pick<Assurance, 'acr'> {
  readonly keyId: string;
  readonly isFipsKey?: boolean;
}

/**
 * Returns a touch of a security key as the JSON column `touches` of a session stores it, under the
 * id of the key. Times are seconds since 1970; `uv` is null if the key did not verify its user.
 */
function touchOf({ acr, isFipsKey = false }: Omit<TouchedKey, 'keyId'>, authTime: Date): KeyTouch {
  const at = authTime.getTime() / 1000;
  return { at, uv: acr === AAL3 ? at : null, fips: isFipsKey };
}

/**
 * The SQL of the sessions to which tokens of one kind belong. `$1` has the hashes of the tokens.
 * The subqueries around the array of hashes hide its length from the planner of PostgreSQL. If the
 * planner saw the length, it would plan the statement again at each call, which takes longer than
 * the look-up.
 */
const KNOWN: Readonly<Record<LookedUpToken, SqlFragment>> = {
  own: fragment`
    SELECT token_hash AS presented, id AS session_id, NULL AS token_client, NULL::jsonb AS token_payload
    FROM sessions
    WHERE token_hash = ANY ((SELECT $1::bytea[])::bytea[]) AND client_id IS NULL`,
  access: fragment`
    SELECT t.id AS presented, g.session_id, g.client_id AS token_client, t.payload AS token_payload
    ${LIVE_ACCESS_TOKEN} AND t.id = ANY ((SELECT $1::bytea[])::bytea[])`,
};

/** Returns the statement that finds the live sessions of tokens, by the SQL of {@link KNOWN}. */
const findLiveOf = (known: SqlFragment) =>
  constantText(fragment`
    WITH known AS (${known})
    SELECT s.id, t.presented, t.token_client, t.token_payload, s.level, s.expires_at, s.pending_identity,
           s.authenticator_id, s.amr, s.acr, s.auth_time, s.of_device, s.user_id, u.org_id, u.email, u.name, a.aaguid,
           is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active) AS is_acting_admin,
           EXISTS (SELECT 1 FROM authenticators k WHERE k.user_id = s.user_id) AS enrolled,
           ${NEWEST_NOTICE} AS notice
    FROM known t
    JOIN sessions s ON s.id = t.session_id
    LEFT JOIN users u ON u.id = s.user_id
    LEFT JOIN authenticators a ON a.id = s.authenticator_id
    WHERE s.level <> 'synthetic' AND s.expires_at > now() AND (s.user_id IS NULL OR u.active)
      AND ${CONFIRMED}`);

/**
 * The statements that find live sessions by tokens of one kind, or of any. PostgreSQL prepares
 * every part of a statement for each run, so that those for one kind take less time.
 */
const FIND_LIVE: Readonly<Record<LookedUpToken | 'any', string>> = {
  own: findLiveOf(KNOWN.own),
  access: findLiveOf(KNOWN.access),
  any: findLiveOf(fragment`${KNOWN.own} UNION ALL ${KNOWN.access}`),
};

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
  of_device: boolean;
  user_id: string | null;
  org_id: string | null;
  email: string | null;
  name: string | null;
  is_acting_admin: boolean;
  aaguid: string | null;
  enrolled: boolean;
  notice: UnreadNotice | null;
}

/** The numbers of live sessions, live grants and valid access tokens that ended or would end. */
interface EndedRow {
  sessions: number;
  grants: number;
  tokens: number;
}

/**
 * Returns the SQL columns that count the live grants and the valid access tokens of users or
 * sessions.
 *
 * @param of a condition on the grant `g`
 */
function grantsAndTokens(of: SqlFragment): SqlFragment {
  return fragment`
    (SELECT count(*)::int FROM oauth_grants g WHERE ${of} AND g.expires_at > now()) AS grants,
    (SELECT count(*)::int FROM oauth_grants g JOIN oauth_artifacts t ON t.grant_id = g.id
     WHERE ${of} AND g.expires_at > now() AND t.model = 'AccessToken' AND t.consumed_at IS NULL
       AND t.expires_at > now()) AS tokens`;
}

interface OwnRow {
  id: string;
  verified: boolean;
  client_id: string | null;
  client_name: string | null;
  ip: string | null;
  user_agent: string | null;
  created_at: Date;
  expires_at: Date;
}

/**
 * Stores sessions. A session lasts as long as its row, so that the deletion of the row ends the
 * session.
 */
@Injectable()
export class SessionsRepository implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.sessions;
  readonly revocationScopes = EVERY_SCOPE;

  /**
   * Adds a session and returns the time at which it ends. `hours` is the setting
   * SVC_SESSION_HOURS, for the computation of the length by {@link sessionLifetime}. A bootstrap
   * session ends the oldest ones of its user beyond {@link MOST_BOOTSTRAP}.
   */
  async insert(
    tx: EntityManager,
    hours: number,
    session: NewSession & {
      readonly id: string;
      readonly tokenHash: Buffer;
      readonly authTime: Date;
      readonly from: SessionOrigin;
    },
  ): Promise<Date> {
    const { id, tokenHash, authTime, from } = session;
    const proven = session.level === 'bootstrap' ? undefined : session;
    const authenticatorId = session.level === 'verified' ? session.authenticatorId : null;
    const pending = 'pendingIdentity' in session ? session.pendingIdentity : null;
    const ofDevice = proven?.isOfDevice === true;
    // A session that a device code opens stores no touch. The key was touched in a browser, and
    // that touch must not meet the conditions of targets in this session.
    const touches =
      session.level === 'verified' && !ofDevice
        ? { [session.authenticatorId]: touchOf(session, authTime) }
        : {};
    const lasts = sessionLifetime(hours, ofDevice);
    const [row] = await sql<{ expires_at: Date }>(tx)`
      INSERT INTO sessions (id, token_hash, level, user_id, pending_identity, authenticator_id, client_id, amr, acr,
                            auth_time, of_device, touches, ip, user_agent, expires_at)
      VALUES (${id}, ${tokenHash}, ${session.level}, ${'userId' in session ? session.userId : null},
              ${pending === null ? null : JSON.stringify(pending)}, ${authenticatorId},
              ${proven?.clientId ?? null}, ${proven?.amr ?? []}, ${proven?.acr ?? null}, ${proven ? authTime : null},
              ${ofDevice}, ${JSON.stringify(touches)}, ${from.ip ?? null}, ${from.userAgent ?? null},
              CASE WHEN ${CONFIRMED} THEN now() + make_interval(hours => ${lasts}) END)
      RETURNING expires_at`;
    if (!row) throw new Error('INSERT returned no row');
    if (session.level === 'bootstrap' && 'userId' in session) {
      await this.#trimBootstrap(tx, session.userId, id);
    }
    return row.expires_at;
  }

  /**
   * Ends the oldest bootstrap sessions of a user beyond {@link MOST_BOOTSTRAP}. A session that
   * another transaction has locked is left out, because the two could deadlock. The new session
   * stays, even if the clock of the database went back, so that it seems older than the others.
   */
  async #trimBootstrap(tx: EntityManager, userId: string, newId: string): Promise<void> {
    await sql(tx)`
      DELETE FROM sessions WHERE id IN (
        SELECT id FROM sessions WHERE id IN (
          SELECT id FROM sessions WHERE user_id = ${userId} AND level = 'bootstrap' AND id <> ${newId}
          ORDER BY created_at DESC, id DESC OFFSET ${MOST_BOOTSTRAP - 1} LIMIT ${MOST_TRIMMED}
        ) FOR UPDATE SKIP LOCKED
      )`;
  }

  /**
   * Finds the live sessions to which some tokens belong. The keys of the result are the token
   * hashes in base64url. Sessions of inactive users, and those of certification test mode, are not
   * found.
   *
   * @param kind the kind of tokens that are looked for; a token of another kind is not found
   */
  async findLive(
    tx: EntityManager,
    tokenHashes: readonly Buffer[],
    kind: LookedUpToken | 'any',
  ): Promise<Map<string, LiveSession>> {
    const rows = await fixedSql<Row>(tx, FIND_LIVE[kind], [tokenHashes]);
    return new Map(rows.map((row) => [row.presented.toString('base64url'), liveSession(row)]));
  }

  /** Ends a session. Returns false if the session had already ended. */
  async delete(tx: EntityManager, id: string): Promise<boolean> {
    const ended = await sql<{ id: string }>(tx)`
      DELETE FROM sessions WHERE id = ${id} AND expires_at > now() RETURNING id`;
    return ended.length === 1;
  }

  /**
   * Locks the row of a live session, so that it cannot end before the transaction does. Returns
   * false if the session has ended. The caller must lock the row of the user first.
   */
  async hold(tx: EntityManager, id: string): Promise<boolean> {
    const held = await sql<{ id: string }>(tx)`
      SELECT id FROM sessions WHERE id = ${id} AND expires_at > now() FOR SHARE`;
    return held.length === 1;
  }

  /**
   * Ends every session of some users with its grants, codes and tokens. Then it ends the other
   * artifacts of the users in the OAuth library (an interaction, a browser session). There are two
   * statements, because every transaction that ends a grant locks the grant before its codes and
   * tokens. A single statement would lock the codes and tokens first.
   */
  async revoke(tx: EntityManager, users: readonly LockedUser[]): Promise<RevokedCounts> {
    const ids = idsOf(users);
    const of = fragment`g.user_id = ANY (${ids}::uuid[])`;
    const [ended] = await sql<EndedRow>(tx)`
      WITH ended AS (
        DELETE FROM sessions WHERE user_id = ANY (${ids}::uuid[]) RETURNING expires_at > now() AS is_live
      )
      SELECT (SELECT count(*)::int FROM ended WHERE is_live) AS sessions, ${grantsAndTokens(of)}`;
    await sql(tx)`DELETE FROM oauth_artifacts WHERE user_id = ANY (${ids}::uuid[])`;
    return endedCounts(ended);
  }

  /**
   * Ends one batch of all sessions, even those without a user yet, with their grants, codes and
   * tokens. It is for the case that the database has lost commits, because logouts may be among
   * them. After the last session, the other artifacts of the OAuth library end: device codes,
   * pushed requests, interactions, and the tokens of clients.
   */
  async revokeOnRecord(
    tx: EntityManager,
    _cause: RevocationCause,
    _from: string,
    most: number,
  ): Promise<EndedBatch> {
    const found = await sql<{ id: string; user_id: string | null }>(tx)`
      SELECT id, user_id FROM sessions ORDER BY id LIMIT ${most}`;
    if (found.length === 0) return this.#revokeArtifactsOnRecord(tx, most);
    await lockUsers(
      tx,
      found.map((session) => session.user_id),
    );
    const ids = found.map(({ id }) => id);
    const [ended] = await sql<EndedRow>(tx)`
      WITH ended AS (
        DELETE FROM sessions WHERE id = ANY (${ids}::uuid[]) RETURNING expires_at > now() AS is_live
      )
      SELECT (SELECT count(*)::int FROM ended WHERE is_live) AS sessions,
             ${grantsAndTokens(fragment`g.session_id = ANY (${ids}::uuid[])`)}`;
    return { counts: endedCounts(ended), next: '' };
  }

  async #revokeArtifactsOnRecord(tx: EntityManager, most: number): Promise<EndedBatch> {
    const found = await sql<{ model: string; id: Buffer; user_id: string | null }>(tx)`
      SELECT model, id, user_id FROM oauth_artifacts ORDER BY model, id LIMIT ${most}`;
    await lockUsers(
      tx,
      found.map((artifact) => artifact.user_id),
    );
    const ended = await sql<{ is_token: boolean }>(tx)`
      DELETE FROM oauth_artifacts a
      USING unnest(${found.map(({ model }) => model)}::text[], ${found.map(({ id }) => id)}::bytea[]) AS k (model, id)
      WHERE a.model = k.model AND a.id = k.id
      RETURNING a.model IN ('AccessToken', 'ClientCredentials') AND a.consumed_at IS NULL
                AND a.expires_at > now() AS is_token`;
    const tokens = ended.filter((artifact) => artifact.is_token).length;
    const next = found.length < most ? undefined : '';
    return { counts: withoutZeros({ tokens }), next };
  }

  /** Counts the live sessions of a user with their grants and tokens. */
  async count(tx: EntityManager, { id }: LockedUser): Promise<RevokedCounts> {
    const of = fragment`g.user_id = ANY (${[id]}::uuid[])`;
    const [row] = await sql<EndedRow>(tx)`
      SELECT (SELECT count(*)::int FROM sessions WHERE user_id = ${id} AND expires_at > now()) AS sessions,
             ${grantsAndTokens(of)}`;
    return endedCounts(row);
  }

  /**
   * Counts the items that end with one session of a user: the session, and its grants and tokens.
   */
  async countOfOne(tx: EntityManager, sessionId: string): Promise<RevokedCounts> {
    const [row] = await sql<EndedRow>(tx)`
      SELECT 1 AS sessions, ${grantsAndTokens(fragment`g.session_id = ${sessionId}`)}`;
    return endedCounts(row);
  }

  /**
   * Ends every session that was opened with one security key of a user, with its grants, codes and
   * tokens. This includes sessions that a device code opened.
   */
  async revokeOfKey(tx: EntityManager, { id }: LockedUser, keyId: string): Promise<RevokedCounts> {
    const ended = await sql<{ is_live: boolean }>(tx)`
      DELETE FROM sessions WHERE user_id = ${id} AND authenticator_id = ${keyId}
      RETURNING expires_at > now() AS is_live`;
    return { sessions: ended.filter((session) => session.is_live).length };
  }

  /** Counts the live sessions of a user by the security key with which they were opened. */
  async countByKey(tx: EntityManager, userId: string): Promise<CountOfKey[]> {
    const rows = await sql<{ key_id: string; sessions: number }>(tx)`
      SELECT authenticator_id AS key_id, count(*)::int AS sessions
      FROM sessions
      WHERE user_id = ${userId} AND authenticator_id IS NOT NULL AND expires_at > now()
      GROUP BY authenticator_id`;
    return rows.map(({ key_id: keyId, sessions }) => ({ keyId, count: { sessions } }));
  }

  /**
   * Ends every session of certification test mode, with the grants and tokens on it, because the
   * mode is off.
   */
  async deleteSynthetic(tx: EntityManager): Promise<void> {
    await sql(tx)`DELETE FROM sessions WHERE level = 'synthetic'`;
  }

  /**
   * Stores the time of a new touch of a security key in a session, and nothing else. If the key did
   * not verify its user this time, the time of the last touch with such a verification stays.
   * Returns false if the session has ended.
   */
  async renewAuthTime(
    tx: EntityManager,
    id: string,
    authTime: Date,
    { keyId, ...touched }: TouchedKey,
  ): Promise<boolean> {
    const { at, uv, fips } = touchOf(touched, authTime);
    const renewed = await sql<{ id: string }>(tx)`
      UPDATE sessions
      SET auth_time = ${authTime},
          touches = touches || jsonb_build_object(${keyId}::text, jsonb_build_object('at', ${at}::float8,
            'uv', coalesce(to_jsonb(${uv}::float8), touches -> ${keyId}::text -> 'uv'), 'fips', ${fips}::boolean))
      WHERE id = ${id} AND level = 'verified' AND expires_at > now()
      RETURNING id`;
    return renewed.length === 1;
  }

  /** Lists the live sessions of a user, the newest first. */
  async listOwn(tx: EntityManager, userId: string): Promise<OwnSession[]> {
    const rows = await sql<OwnRow>(tx)`
      SELECT s.id, s.level <> 'bootstrap' AS verified, s.client_id, c.metadata ->> 'client_name' AS client_name,
             host(s.ip) AS ip, s.user_agent, s.created_at, s.expires_at
      FROM sessions s LEFT JOIN oauth_clients c ON c.id = s.client_id
      WHERE s.user_id = ${userId} AND s.expires_at > now() AND c.kind IS DISTINCT FROM 'removed'
      ORDER BY s.created_at DESC, s.id DESC LIMIT ${MOST_SHOWN}`;
    return rows.map(ownSession);
  }

  /**
   * Ends one session of a user, with every grant, code and token on it.
   *
   * @returns the session that ended; undefined if the user has no such live session
   */
  async deleteOwn(tx: EntityManager, userId: string, id: string): Promise<OwnSession | undefined> {
    const [row] = await sql<OwnRow>(tx)`
      DELETE FROM sessions WHERE id = ${id} AND user_id = ${userId} AND expires_at > now()
      RETURNING id, level <> 'bootstrap' AS verified, client_id, NULL AS client_name, host(ip) AS ip, user_agent,
                created_at, expires_at`;
    return row && ownSession(row);
  }
}

function endedCounts(row: EndedRow | undefined): RevokedCounts {
  const { sessions = 0, grants = 0, tokens = 0 } = row ?? {};
  return { sessions, ...withoutZeros({ grants, tokens }) };
}

function ownSession(row: OwnRow): OwnSession {
  return {
    id: row.id,
    verified: row.verified,
    client: row.client_id === null ? null : { id: row.client_id, name: row.client_name },
    ip: row.ip,
    userAgent: row.user_agent,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
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
  const token = row.token_client === null ? null : accessToken(row.token_client, row.token_payload);
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
    // An earlier version did not store `of_device`. For sessions of that version, only the access
    // token states that a device code opened the session.
    isOfDevice: row.of_device || token?.isOfDevice === true,
    accessToken: token,
    unreadNotice: row.notice,
  };
}

/**
 * Returns a value that is not null. A CHECK constraint of the table guarantees that it is there.
 */
function present<T>(value: T | null): T {
  if (value === null) throw new Error('a session row breaks its own constraint');
  return value;
}
