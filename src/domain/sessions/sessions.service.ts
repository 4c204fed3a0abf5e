import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { newUuid } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { hashOpaqueToken, mintOpaqueToken } from '#platform/crypto/opaque-token.js';
import { QueryBatcher } from '#platform/database/statements/query-batcher.js';
import { DomainError, type Challenge } from '#platform/errors/domain-error.js';
import {
  clientsInSession,
  deleteOtherSessions,
  lockUser,
  recordEnds,
} from './ended-sessions.repository.js';
import { openOwnSession, type NewOwnSession } from './own-session.repository.js';
import { assertTouchedWithin, isTouchedWithin, type Touch } from './recent-touch.js';
import type {
  LiveSession,
  OwnSession,
  SessionOrigin,
  SessionUser,
  VerifiedSession,
} from './session.js';
import { SessionsRepository, type NewSession, type TouchedKey } from './sessions.repository.js';
import { RememberedTokens } from './remembered/remembered-tokens.js';
import type { LookedUpToken } from './remembered/token-check.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * A session that was just opened, with its token. Only this process and the client know the token.
 */
export interface OpenedSession {
  readonly id: string;
  readonly token: string;
  readonly authTime: Date;
  readonly expiresAt: Date;
}

/** The session to which a grant belongs after its authorization code was redeemed. */
export interface SessionOfGrant {
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** The id of the session as clients see it, which logout tokens contain. */
  readonly sid: string | null;
}

/**
 * The sessions and clients that a logout in a browser would affect, for the page that asks for a
 * confirmation.
 */
export interface LogoutPreview {
  /** The clients that have grants in the session of the browser. */
  readonly clients: readonly { readonly id: string; readonly name: string | null }[];
  /** The other sessions of the user, which the end of this one does not end, the newest first. */
  readonly others: readonly OwnSession[];
}

/**
 * Opens, finds and ends sessions. A deleted row ends the session on every replica at once, because
 * a statement finds the session again for every request. The process remembers the session of a
 * token only to choose that statement, and to prepare the work of a request before the statement
 * has found the session again.
 */
@Injectable()
export class Sessions implements OnModuleInit {
  readonly #live: QueryBatcher<Buffer, LiveSession | undefined>;
  readonly #remembered = new RememberedTokens<LiveSession>();

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly clock: Clock,
    private readonly dataSource: DataSource,
    private readonly repository: SessionsRepository,
    private readonly audit: AuditLog,
  ) {
    this.#live = new QueryBatcher((tokenHashes) => this.#findLive(tokenHashes));
  }

  /**
   * Ends all sessions of certification test mode (logins without a key, for conformance tests) and
   * their tokens at start-up, if the mode is off.
   */
  async onModuleInit(): Promise<void> {
    if (this.config.certification.token !== undefined) return;
    await this.repository.deleteSynthetic(this.dataSource.manager);
  }

  /**
   * Opens a session and makes its token. The session lasts SVC_SESSION_HOURS, but at most one hour
   * if a device code opens it. It is never prolonged.
   */
  async open(tx: EntityManager, session: NewSession, from: SessionOrigin): Promise<OpenedSession> {
    const id = newUuid();
    const { token, hash } = mintOpaqueToken();
    const authTime = ('authTime' in session ? session.authTime : undefined) ?? this.clock.now();
    const row = { ...session, id, tokenHash: hash, authTime, from };
    const expiresAt = await this.repository.insert(tx, this.config.session.hours, row);
    return { id, token, authTime, expiresAt };
  }

  /**
   * Opens a session for a client that a user authorized in a browser, and moves the grant of the
   * authorization to it. The session lasts SVC_SESSION_HOURS. The client uses it by the access
   * tokens of the grant, and never gets the own token of the session.
   *
   * @returns the session; undefined if the user, the browser session or the grant has ended
   */
  async openOfGrant(
    grantId: Buffer,
    { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
    client: Pick<NewOwnSession, 'clientId' | 'authTime' | 'from'>,
  ): Promise<SessionOfGrant | undefined> {
    const own = { ...client, id: newUuid(), tokenHash: mintOpaqueToken().hash };
    const grant = { id: grantId, userId, sessionId };
    const { manager } = this.dataSource;
    const opened = await openOwnSession(manager, this.config.session.hours, grant, own);
    return opened && { sessionId: opened.id, expiresAt: opened.expires_at, sid: opened.sid };
  }

  /**
   * Ends a session, so that its token is not accepted any more. Returns false if the session had
   * already ended.
   */
  end(tx: EntityManager, id: string): Promise<boolean> {
    return this.repository.delete(tx, id);
  }

  /**
   * Locks the row of a live session, so that it cannot end before the transaction does. Returns
   * false if the session has ended. The caller must lock the row of the user first.
   */
  hold(tx: EntityManager, id: string): Promise<boolean> {
    return this.repository.hold(tx, id);
  }

  /**
   * Locks the row of a live session, so that it cannot end before the transaction does. The caller
   * must lock the row of the user first.
   *
   * @throws DomainError unauthenticated if the session has ended
   */
  async assertHeld(tx: EntityManager, id: string): Promise<void> {
    if (await this.repository.hold(tx, id)) return;
    throw new DomainError('unauthenticated', 'This session has ended. Sign in again.');
  }

  /**
   * Sets `auth_time` of a session, and the time of the last touch of the security key, to the
   * present time, and nothing else. It is for a step-up, in which the user touches the key again.
   * Returns false if the session has ended.
   */
  renewAuthTime(tx: EntityManager, id: string, key: TouchedKey): Promise<boolean> {
    return this.repository.renewAuthTime(tx, id, this.clock.now(), key);
  }

  /** Returns true if the last touch of a security key in a session is at most `seconds` old. */
  isTouchedWithin(seconds: number, touch: Touch): boolean {
    return isTouchedWithin(seconds, touch, this.clock.milliseconds());
  }

  /**
   * Checks that the last touch of a security key in a session is at most `seconds` old (RFC 9470
   * §3).
   *
   * @throws DomainError insufficient_user_authentication
   */
  assertTouchedWithin(seconds: number, touch: Touch, challenge: Challenge): void {
    assertTouchedWithin(seconds, touch, challenge, this.clock.milliseconds());
  }

  /**
   * Finds a live session by its own token. A cookie may contain only this kind of token. Returns
   * undefined for an unknown, ended or expired session, an inactive user, or an OAuth access token.
   *
   * @param found the session by {@link findByAnyToken}, if the look-up began already
   */
  async find(token: string, found = this.findByAnyToken(token)): Promise<LiveSession | undefined> {
    const session = await found;
    return session && kindOfToken(session) === 'access' ? undefined : session;
  }

  /**
   * Finds a live session by its own token or by an OAuth access token. The caller decides what an
   * access token may be used for.
   */
  findByAnyToken(token: string): Promise<LiveSession | undefined> {
    return this.#live.load(hashOpaqueToken(token));
  }

  /**
   * Finds the live sessions of tokens, by their hashes. A shorter statement looks for tokens of one
   * kind, if all of them were of this kind before. If it does not find all of them, the full
   * statement decides.
   */
  async #findLive(hashes: readonly Buffer[]): Promise<(LiveSession | undefined)[]> {
    const { manager } = this.dataSource;
    const keys = hashes.map((hash) => hash.toString('base64url'));
    const kind = this.#kindOfAll(hashes);
    let found = kind && (await this.repository.findLive(manager, hashes, kind));
    if (!found || !keys.every((key) => found?.has(key))) {
      found = await this.repository.findLive(manager, hashes, 'any');
    }
    return keys.map((key, index) => {
      const session = found.get(key);
      this.#remembered.set(hashes[index] as Buffer, session);
      return session;
    });
  }

  /**
   * Returns the session of a token, given by its hash, as a look-up of this process found it last;
   * undefined if there was none. It may have ended since.
   */
  recall(tokenHash: Buffer): LiveSession | undefined {
    return this.#remembered.get(tokenHash);
  }

  #kindOfAll([first, ...others]: readonly Buffer[]): LookedUpToken | undefined {
    const kind = first === undefined ? undefined : this.#kindOf(first);
    return others.every((hash) => this.#kindOf(hash) === kind) ? kind : undefined;
  }

  #kindOf(hash: Buffer): LookedUpToken | undefined {
    const session = this.#remembered.get(hash);
    return session && kindOfToken(session);
  }

  /** Lists the sessions of a user, the newest first. */
  list(userId: string): Promise<OwnSession[]> {
    return this.repository.listOwn(this.dataSource.manager, userId);
  }

  /**
   * Ends one session of a user at once, on every replica, with every grant, code and token of the
   * session. If several requests do so, only the one that deletes the row succeeds.
   *
   * @throws DomainError not_found for an id that is not a live session of the user
   */
  async endOwn(user: SessionUser, id: string, origin: AuditOrigin): Promise<void> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      const ended = isUuid(id) ? await this.repository.deleteOwn(tx, user.id, id) : undefined;
      if (!ended) throw new DomainError('not_found', 'You have no such session.');
      await this.audit.record(tx, {
        type: 'session_ended',
        actorId: user.id,
        subjectId: user.id,
        orgId: user.orgId,
        origin,
        details: {
          session_id: ended.id,
          ...(ended.client && { client_id: ended.client.id }),
          opened_from: { ip: ended.ip, user_agent: ended.userAgent },
        },
      });
    });
  }

  /**
   * Ends all sessions of the user except the given one, in one transaction. If two sessions do this
   * to each other at once, one of them stays.
   *
   * @returns the numbers of ended sessions, grants and tokens
   * @throws DomainError unauthenticated if the given session had already ended
   */
  async endOthers(
    session: VerifiedSession,
    origin: AuditOrigin,
  ): Promise<{ sessions: number; grants: number; tokens: number }> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      await lockUser(tx, session.user.id);
      await this.assertHeld(tx, session.id);
      const { user, id } = session;
      const { sessions, grants, tokens } = await deleteOtherSessions(tx, user.id, id);
      await recordEnds(tx, user, sessions, origin);
      return { sessions: sessions.length, grants, tokens };
    });
  }

  /**
   * Finds the clients whose access a logout in a browser would end, and the other sessions of the
   * user, which would stay. Returns undefined if the user did not log in with a key.
   */
  async previewLogout(token: string): Promise<LogoutPreview | undefined> {
    const session = await this.find(token);
    if (session?.level !== 'verified') return undefined;
    const [clients, own] = await Promise.all([
      clientsInSession(this.dataSource.manager, session.id),
      this.list(session.user.id),
    ]);
    return { clients, others: own.filter(({ id }) => id !== session.id) };
  }

  /**
   * Ends the session to which a token belongs, if there is one. From then on every replica refuses
   * the token.
   *
   * @param withOthers also ends every other session of the user, if the user logged in with a key
   */
  async logOut(token: string, origin: AuditOrigin, withOthers = false): Promise<void> {
    const session = await this.find(token);
    if (!session) return;
    const user = withOthers && session.level === 'verified' ? session.user : undefined;
    await withTransactionRetry(this.dataSource, async (tx) => {
      if (user) await lockUser(tx, user.id);
      const isEnded = await this.end(tx, session.id);
      // The other sessions end also if another request has just ended this one.
      if (user) {
        const { sessions } = await deleteOtherSessions(tx, user.id, session.id);
        await recordEnds(tx, user, sessions, origin);
      }
      if (!isEnded) return;
      await this.audit.record(tx, {
        type: 'logout',
        actorId: session.user?.id ?? null,
        subjectId: session.user?.id ?? null,
        orgId: session.user?.orgId ?? null,
        origin,
      });
    });
  }
}

/** Returns the kind of the token by which a session was found. */
export function kindOfToken(session: LiveSession): LookedUpToken {
  return session.level === 'verified' && session.accessToken !== null ? 'access' : 'own';
}
