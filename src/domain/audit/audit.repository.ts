import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/crypto/random.js';
import { sql } from '#platform/database/sql.js';
import { AUDIT_CLASS, type AuditEvent } from './audit-event.js';

/** The audit log: written in the transaction of the change it records. */
@Injectable()
export class AuditLog {
  async record(tx: EntityManager, event: AuditEvent): Promise<void> {
    const { type, actorId, subjectId, orgId, origin, details = {} } = event;
    await sql(tx)`
      INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details)
      VALUES (${newUuid()}, ${type}, ${AUDIT_CLASS[type]}, ${actorId}, ${subjectId}, ${orgId}, ${origin.requestId},
              ${origin.ip ?? null}, ${origin.userAgent ?? null}, ${JSON.stringify(details)})`;
  }
}
