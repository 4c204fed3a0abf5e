import { Injectable } from '@nestjs/common';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuditEventsRepository, type KeyEvent } from '#domain/audit/audit-events.repository.js';
import {
  AuthenticatorsRepository,
  type Authenticator,
} from '#domain/authenticators/authenticators.repository.js';
import type { SessionUser } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The most events of keys that a user sees. */
const EVENTS_SHOWN = 20;

/** The security keys of a user: the list, its events, and the names of the keys. */
@Injectable()
export class SecurityKeys {
  constructor(
    private readonly dataSource: DataSource,
    private readonly keys: AuthenticatorsRepository,
    private readonly audit: AuditLog,
    private readonly auditEvents: AuditEventsRepository,
  ) {}

  /** Lists the keys of a user, the oldest first. */
  list(userId: string): Promise<Authenticator[]> {
    return this.keys.list(this.dataSource.manager, userId);
  }

  /** Lists the enrollments and refused enrollments of a user, the newest first. */
  listEvents(user: SessionUser): Promise<KeyEvent[]> {
    return this.auditEvents.listKeyEvents(this.dataSource.manager, user, EVENTS_SHOWN);
  }

  /** Renames a key. @throws DomainError not_found for an id that is not a key of the user */
  async rename(
    user: SessionUser,
    id: string,
    name: string,
    origin: AuditOrigin,
  ): Promise<Authenticator> {
    return this.dataSource.transaction(async (tx) => {
      const key = isUuid(id) ? await this.keys.rename(tx, user.id, id, name) : undefined;
      if (!key) throw new DomainError('not_found', 'You have no such key.');
      await this.audit.record(tx, {
        type: 'key_renamed',
        actorId: user.id,
        subjectId: user.id,
        orgId: user.orgId,
        origin,
        details: { key_id: key.id, name },
      });
      return key;
    });
  }
}
