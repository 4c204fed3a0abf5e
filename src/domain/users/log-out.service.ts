import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Sessions } from '#domain/sessions/sessions.service.js';

/** Ending one's own session. */
@Injectable()
export class LogOut {
  constructor(
    private readonly dataSource: DataSource,
    private readonly sessions: Sessions,
    private readonly audit: AuditLog,
  ) {}

  /** Ends the session of a token, if it has one; the token is refused from now on, on every replica. */
  async logOut(token: string, origin: AuditOrigin): Promise<void> {
    const session = await this.sessions.find(token);
    if (!session) return;
    await this.dataSource.transaction(async (tx) => {
      if (!(await this.sessions.end(tx, session.id))) return;
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
