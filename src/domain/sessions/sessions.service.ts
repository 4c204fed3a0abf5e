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

/** A session that was just opened. Only this process and the client know the token. */
export interface OpenedSession {
  readonly id: string;
  readonly token: string;
  readonly authTime: Date;
  readonly expiresAt: Date;
}

/** The session to which the grant of a redeemed code was moved. */
export interface SessionOfGrant {
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** The id of the session for clients, which logout tokens carry. */
  readonly sid: string | null;
}

/** The effect of a browser's logout. */
export interface LogoutPreview {
  /** The clients that have grants in the session. */
  readonly clients: readonly { readonly id: string; readonly name: string | null }[];
  /** The other sessions of the user, the newest first. */
  readonly others: readonly OwnSession[];
}

/**
 * Opens, finds and ends sessions. Nothing is cached: a deleted row ends the session on every
 * replica at once.
 */
@Injectable()
export class Sessions implements OnModuleInit {
  readonly #live: QueryBatcher<Buffer, LiveSession | undefined>;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly clock: Clock,
    private readonly dataSource: DataSource,
    private readonly repository: SessionsRepository,
    private readonly audit: AuditLog,
  ) {
    this.#live = new QueryBatcher(async (tokenHashes) => {
      const found = await repository.findLive(dataSource.manager, tokenHashes);
      return tokenHashes.map((hash) => found.get(hash.toString('base64url')));
    });
  }

  /**
   * Without certification test mode, ends all synthetic sessions and the tokens on them at
   * start-up.
   */
  async onModuleInit(): Promise<void> {
    if (this.config.certification.token !== undefined) return;
    await this.repository.deleteSynthetic(this.dataSource.manager);
  }

  /**
   * Opens a session and mints its token. The session lasts SVC_SESSION_HOURS, or one hour for a
   * device, and is never renewed.
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
   * authorization to the new session. The session lasts SVC_SESSION_HOURS. No client gets its
   * token.
   *
   * @returns the session; undefined when the user, the browser's session or the grant has ended
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
   * Ends a session and every use of its token. Returns false when the session had ended already.
   */
  end(tx: EntityManager, id: string): Promise<boolean> {
    return this.repository.delete(tx, id);
  }

  /**
   * Locks a live session, so that it cannot end before the transaction does. Returns false if the
   * session has ended. The caller locks the row of the user first.
   */
  hold(tx: EntityManager, id: string): Promise<boolean> {
    return this.repository.hold(tx, id);
  }

  /**
   * Locks a live session, so that it cannot end before the transaction does. The caller locks the
   * row of the user first.
   *
   * @throws DomainError unauthenticated if the session has ended
   */
  async assertHeld(tx: EntityManager, id: string): Promise<void> {
    if (await this.repository.hold(tx, id)) return;
    throw new DomainError('unauthenticated', 'This session has ended. Sign in again.');
  }

  /**
   * Sets `auth_time` and the touch of the key to now after a step-up, and nothing else. Returns
   * false when the session had ended.
   */
  renewAuthTime(tx: EntityManager, id: string, key: TouchedKey): Promise<boolean> {
    return this.repository.renewAuthTime(tx, id, this.clock.now(), key);
  }

  /** Returns true when the touch of a session is no older than so many seconds. */
  isTouchedWithin(seconds: number, touch: Touch): boolean {
    return isTouchedWithin(seconds, touch, this.clock.milliseconds());
  }

  /**
   * Checks that the touch of a session is no older than so many seconds (RFC 9470 §3).
   *
   * @throws DomainError insufficient_user_authentication
   */
  assertTouchedWithin(seconds: number, touch: Touch, challenge: Challenge): void {
    assertTouchedWithin(seconds, touch, challenge, this.clock.milliseconds());
  }

  /**
   * Finds the live session of its own token, the only kind of token that a cookie may hold.
   * Undefined for an unknown, ended or expired session, an inactive user, or an OAuth access token.
   */
  async find(token: string): Promise<LiveSession | undefined> {
    const session = await this.findByAnyToken(token);
    return session?.level === 'verified' && session.accessToken !== null ? undefined : session;
  }

  /**
   * Finds the live session of a token of either kind. The caller decides what an OAuth access token
   * may be used for.
   */
  findByAnyToken(token: string): Promise<LiveSession | undefined> {
    return this.#live.load(hashOpaqueToken(token));
  }

  /** Lists the sessions of a user, the newest first. */
  list(userId: string): Promise<OwnSession[]> {
    return this.repository.listOwn(this.dataSource.manager, userId);
  }

  /**
   * Ends one session of a user at once, on every replica, with every grant, code and token on it.
   * Of several requests for one session, one ends it: the deleted row decides.
   *
   * @throws DomainError not_found for an id that is not a live session of the user
   */
  async endOwn(user: SessionUser, id: string, origin: AuditOrigin): Promise<void> {
    await this.dataSource.transaction(async (tx) => {
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
   * Ends every other session of the user of a session, in one transaction. Of two sessions that end
   * each other at once, one stays.
   *
   * @returns what ended
   * @throws DomainError unauthenticated when the session had ended
   */
  async endOthers(
    session: VerifiedSession,
    origin: AuditOrigin,
  ): Promise<{ sessions: number; grants: number; tokens: number }> {
    return this.dataSource.transaction(async (tx) => {
      await lockUser(tx, session.user.id);
      await this.assertHeld(tx, session.id);
      const { user, id } = session;
      const { sessions, grants, tokens } = await deleteOtherSessions(tx, user.id, id);
      await recordEnds(tx, user, sessions, origin);
      return { sessions: sessions.length, grants, tokens };
    });
  }

  /**
   * Finds what the logout of a browser ends, and the other sessions of the user, which stay.
   * Undefined without a key login.
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
   * Ends the session of a token, when it has one. Every replica refuses the token from now on.
   *
   * @param withOthers ends every other session of the user too, if the user logged in with a key
   */
  async logOut(token: string, origin: AuditOrigin, withOthers = false): Promise<void> {
    const session = await this.find(token);
    if (!session) return;
    const user = withOthers && session.level === 'verified' ? session.user : undefined;
    await this.dataSource.transaction(async (tx) => {
      if (user) await lockUser(tx, user.id);
      if (!(await this.end(tx, session.id))) return;
      if (user) {
        const { sessions } = await deleteOtherSessions(tx, user.id, session.id);
        await recordEnds(tx, user, sessions, origin);
      }
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
