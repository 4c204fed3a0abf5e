import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { SessionsRepository } from '#domain/sessions/sessions.repository.js';
import { Sessions, type OpenedSession } from '#domain/sessions/sessions.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { newUuid } from '#platform/clock/random.js';
import { UsersRepository } from './users.repository.js';

/** The person of certification test mode. Nobody can prove this domain (RFC 2606 §2), and so nobody else is them. */
const PERSON = { email: 'certification@svc.invalid', name: 'Certification Test' } as const;

/** A session that no key stands behind. */
export interface SyntheticSession extends OpenedSession {
  readonly userId: string;
  readonly authTime: Date;
}

/** Logging in without a key, as nobody: for certification test mode, whose module alone asks for it. */
@Injectable()
export class SyntheticLogIn implements OnModuleInit {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly dataSource: DataSource,
    private readonly users: UsersRepository,
    private readonly sessions: Sessions,
    private readonly rows: SessionsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** A start without the mode leaves nothing of it: no session, and no token on one. */
  async onModuleInit(): Promise<void> {
    if (this.config.certification.token !== undefined) return;
    await this.rows.deleteSynthetic(this.dataSource.manager);
  }

  /** Opens a synthetic session: it drives OAuth, and opens nothing of ours. */
  async logIn(origin: AuditOrigin): Promise<SyntheticSession> {
    return this.dataSource.transaction(async (tx) => {
      const userId = await this.users.ensureOutsider(tx, { id: newUuid(), ...PERSON });
      const authTime = new Date();
      const session = { level: 'synthetic', userId, authTime, amr: [], acr: null } as const;
      const opened = await this.sessions.open(tx, session, origin);
      await this.audit.record(tx, {
        type: 'login_success',
        actorId: userId,
        subjectId: userId,
        orgId: null,
        origin,
        details: { synthetic: true },
      });
      return { ...opened, userId, authTime };
    });
  }
}
