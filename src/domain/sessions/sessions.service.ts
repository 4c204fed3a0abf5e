import { Inject, Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { hashOpaqueToken, mintOpaqueToken } from '#platform/crypto/opaque-token.js';
import { SessionLookUps } from './session-look-ups.service.js';
import type { LiveSession, SessionOrigin } from './session.js';
import { SessionsRepository, type NewSession } from './sessions.repository.js';

/** A session just opened: its token is known here and to its holder, nowhere else. */
export interface OpenedSession {
  readonly id: string;
  readonly token: string;
  readonly expiresAt: Date;
}

/** Opens and looks up sessions. Nothing is cached: deleting a row ends the session on every replica at once. */
@Injectable()
export class Sessions {
  readonly #hours: number;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly lookUps: SessionLookUps,
    private readonly repository: SessionsRepository,
  ) {
    this.#hours = config.session.hours;
  }

  /** Opens a session of SVC_SESSION_HOURS, never renewed, and mints its token. */
  async open(tx: EntityManager, session: NewSession, from: SessionOrigin): Promise<OpenedSession> {
    const id = newUuid();
    const { token, hash } = mintOpaqueToken();
    const row = { ...session, id, tokenHash: hash, from };
    const expiresAt = await this.repository.insert(tx, this.#hours, row);
    return { id, token, expiresAt };
  }

  /** Ends a session: its row is gone, and with it every use of its token. False when it had ended already. */
  end(tx: EntityManager, id: string): Promise<boolean> {
    return this.repository.delete(tx, id);
  }

  /** Keeps a session alive until the transaction ends, the row of its user locked before; false when it had ended. */
  hold(tx: EntityManager, id: string): Promise<boolean> {
    return this.repository.hold(tx, id);
  }

  /** Renews `auth_time` after a step-up, and nothing else; false when the session had ended. */
  renewAuthTime(tx: EntityManager, id: string, authTime: Date): Promise<boolean> {
    return this.repository.renewAuthTime(tx, id, authTime);
  }

  /**
   * The live session whose own token this is: the only kind that a cookie may hold. Undefined for one that is unknown,
   * ended, expired, of an inactive user, or an OAuth access token.
   */
  async find(token: string): Promise<LiveSession | undefined> {
    const session = await this.findByAnyToken(token);
    return session?.level === 'verified' && session.accessToken !== null ? undefined : session;
  }

  /** The live session behind a token of either kind: what an OAuth access token may be used for is the caller's to judge. */
  findByAnyToken(token: string): Promise<LiveSession | undefined> {
    return this.lookUps.find(hashOpaqueToken(token));
  }
}
