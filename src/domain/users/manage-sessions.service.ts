import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  OwnSessionsRepository,
  type OwnSession,
} from '#domain/sessions/own-sessions.repository.js';
import type { SessionUser } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** What people do with their own sessions. */
@Injectable()
export class ManageSessions {
  constructor(
    private readonly dataSource: DataSource,
    private readonly sessions: OwnSessionsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** The sessions of a user, the newest first. */
  list(userId: string): Promise<OwnSession[]> {
    return this.sessions.list(this.dataSource.manager, userId);
  }

  /**
   * Ends a session at once, on every replica, with every grant, code and token on it. The row decides: of any number of requests
   * one ends it.
   *
   * @throws DomainError not_found for an id that is not one of the user's own live sessions
   */
  async end(user: SessionUser, id: string, origin: AuditOrigin): Promise<void> {
    await this.dataSource.transaction(async (tx) => {
      const ended = isUuid(id) ? await this.sessions.end(tx, user.id, id) : undefined;
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
}
