import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { newUuid } from '#platform/crypto/random.js';
import { sql } from '#platform/database/statements/sql.js';
import { AUDIT_CLASS, type AuditEvent } from './audit-event.js';

/** The audit log: written in the transaction of the change it records. */
@Injectable()
export class AuditLog {
  /** @param atMostEvery seconds in which one event of this type about one subject is enough; every one counts unless told */
  async record(
    tx: EntityManager,
    event: AuditEvent,
    { atMostEvery }: { readonly atMostEvery?: number } = {},
  ): Promise<void> {
    const { type, actorId, subjectId, orgId, origin, details = {} } = event;
    const seconds = atMostEvery ?? null;
    await sql(tx)`
      INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details)
      SELECT ${newUuid()}, ${type}, ${AUDIT_CLASS[type]}, ${actorId}, ${subjectId}, ${orgId}, ${origin.requestId},
             ${origin.ip ?? null}, ${origin.userAgent ?? null}, ${JSON.stringify(details)}
      WHERE ${seconds}::int IS NULL
        OR NOT EXISTS (SELECT FROM audit_events e
                       WHERE e.subject_id = ${subjectId}::uuid AND e.type = ${type}::text
                         AND e.created_at > clock_timestamp() - make_interval(secs => ${seconds}::int))`;
  }
}
