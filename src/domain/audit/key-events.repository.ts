import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** The outcome of an enrollment, as its audit row keeps it. */
export interface KeyEvent {
  readonly type: 'enrollment' | 'enrollment_refused';
  readonly at: Date;
  readonly ip: string | null;
  /** The model, where the key's certificate named it. */
  readonly aaguid: string | null;
  /** Why it was refused. */
  readonly reason: string | null;
  readonly requestId: string | null;
}

/** The audit log of a person's own keys. */
@Injectable()
export class KeyEventsRepository {
  /**
   * The latest events of the keys of a person, the newest first. A key that was refused before the account existed is told
   * by the e-mail address, which only this person's identity provider vouches for.
   */
  list(
    tx: EntityManager,
    person: { readonly id: string; readonly email: string | null },
    limit: number,
  ): Promise<KeyEvent[]> {
    return sql<KeyEvent>(tx)`
      SELECT type, created_at AS at, host(ip) AS ip, details ->> 'aaguid' AS aaguid,
             details ->> 'reason' AS reason, request_id AS "requestId"
      FROM (
        (SELECT * FROM audit_events
         WHERE subject_id = ${person.id} AND type IN ('enrollment', 'enrollment_refused')
         ORDER BY created_at DESC, id DESC LIMIT ${limit})
        UNION ALL
        (SELECT * FROM audit_events
         WHERE type = 'enrollment_refused' AND subject_id IS NULL AND details ->> 'email' = ${person.email}
         ORDER BY created_at DESC, id DESC LIMIT ${limit})
      ) events
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
  }
}
