import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { newUuid } from '#platform/clock/random.js';
import { afterCommit } from '#platform/database/statements/after-commit.js';
import { fragment, sql, SqlFragment } from '#platform/database/statements/sql.js';
import {
  AUDIT_CLASS,
  AUDIT_TYPES,
  type AuditClass,
  type AuditEvent,
  type AuditType,
} from './audit-event.js';
import type { AuditOrigin } from './audit-origin.js';
import type { CommittedActs } from './noted-act.js';
import { notePeople } from './notices/account-notices.repository.js';
import { isNoticed, isTold } from './notices/noticed-types.js';
import { OTHER } from './search-keys.js';

/**
 * A row of the audit log that a statement writes. Each column is a value, or an SQL expression that
 * reads the source of the rows.
 */
export interface AuditRecord {
  /** The id of the row. The default is a new id, which suits a statement that writes one row. */
  readonly id?: string | SqlFragment;
  readonly type: AuditType | SqlFragment;
  readonly actorId?: string | null | SqlFragment;
  readonly subjectId?: string | null | SqlFragment;
  readonly orgId?: string | null | SqlFragment;
  /**
   * The origin of the request. An {@link SqlFragment} gives its three columns: request id, IP
   * address, user agent.
   */
  readonly origin: AuditOrigin | SqlFragment;
  readonly details?: object | SqlFragment;
  /**
   * The e-mail addresses of actor and subject and the name of the client, if the statement has read
   * them already. If one is missing, a trigger looks it up for each row.
   */
  readonly actorEmail?: SqlFragment;
  readonly subjectEmail?: SqlFragment;
  readonly clientName?: SqlFragment;
}

/**
 * Writes the `INSERT` of audit rows, for use as a statement or in a `WITH`. It is the only `INSERT`
 * of the audit log in the product, and it adds the class of the type. The statement returns the ids
 * of the rows as `recorded`, so that the process can remember which events it committed.
 *
 *     WITH changed AS (UPDATE … RETURNING id), audited AS (${recordAudit({ … },
 *     fragment`FROM changed`)}) SELECT id, ${RECORDED} FROM changed
 *
 * @param source the `FROM … WHERE …` whose rows are recorded; one row by default
 */
export function recordAudit(record: AuditRecord, source: SqlFragment = fragment``): SqlFragment {
  const { id = newUuid(), type, actorId, subjectId, orgId, origin, details = {} } = record;
  const { actorEmail = NO_NAME, subjectEmail = NO_NAME, clientName = NO_NAME } = record;
  const insertion = fragment`
    INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details,
                              actor_email, subject_email, client_name, epoch)
    SELECT ${id}::uuid, ${type}::text, ${classOf(type)}::text, ${actorId ?? NULL}::uuid, ${subjectId ?? NULL}::uuid,
           ${orgId ?? NULL}::uuid, ${originColumns(origin)}, ${detailsColumn(details)},
           ${actorEmail}, ${subjectEmail}, ${clientName}, ${EPOCH}
    ${source}
    RETURNING id AS recorded`;
  return new SqlFragment(insertion.strings, insertion.values, true);
}

/**
 * The column `recorded` with the ids of the written rows, for a statement that names the insertion
 * `audited` in its `WITH`.
 */
export const RECORDED = fragment`(SELECT array_agg(recorded) FROM audited) AS recorded`;

/**
 * The SQL of the epoch of a new row. A new epoch begins when a failover or a restore may have lost
 * rows, so that readers of the log notice the loss. If the service has not confirmed the present
 * start of PostgreSQL yet, `audit_epoch_of_unconfirmed` raises an error. It raises none on the
 * connections that confirm the start.
 */
const EPOCH = fragment`coalesce(
  (SELECT d.epoch FROM database_identity d WHERE d.started_at = pg_postmaster_start_time()), audit_epoch_of_unconfirmed())`;

const NULL = fragment`NULL`;
const NO_NAME = fragment`NULL::text`;

/**
 * Returns the class of a type. If only the statement knows the type, the class is an SQL expression
 * over the types of each class.
 */
function classOf(type: AuditType | SqlFragment): string | SqlFragment {
  if (!(type instanceof SqlFragment)) return AUDIT_CLASS[type];
  const of = (name: AuditClass) => fragment`WHEN ${type} = ANY (${typesOf(name)})`;
  return fragment`CASE ${of('auth')} THEN 'auth' ${of('oauth')} THEN 'oauth' ${of('admin')} THEN 'admin' END`;
}

/**
 * Returns the types of a class as text of the statement. A parameter is not used, because
 * PostgreSQL must know the types when it plans the statement. All types are constants of the
 * product, so no value of a request becomes SQL.
 */
function typesOf(name: AuditClass): SqlFragment {
  const types = AUDIT_TYPES.filter((type) => AUDIT_CLASS[type] === name);
  return new SqlFragment([`'{${types.join(',')}}'::text[]`], []);
}

function originColumns(origin: AuditOrigin | SqlFragment): SqlFragment {
  if (origin instanceof SqlFragment) return origin;
  return fragment`${origin.requestId}::text, ${origin.ip ?? null}::inet, ${origin.userAgent ?? null}::text`;
}

function detailsColumn(details: object | SqlFragment): SqlFragment {
  return details instanceof SqlFragment ? details : fragment`${JSON.stringify(details)}::jsonb`;
}

/**
 * Returns the condition that no event of the type and about the subject of the given event was
 * recorded in the last `seconds`. It also tests the class and the statement time, only because
 * PostgreSQL can then skip partitions that have no such event.
 */
function unlessSince({ type, subjectId }: AuditEvent, seconds: number): SqlFragment {
  const ofClass = new SqlFragment([`e.class = '${AUDIT_CLASS[type]}'`], []);
  const interval = fragment`make_interval(secs => ${seconds}::int)`;
  return fragment`
    WHERE NOT EXISTS (SELECT FROM audit_events e
                      WHERE e.subject_id = ${subjectId}::uuid AND e.type = ${type}::text AND ${OTHER} AND ${ofClass}
                        AND e.created_at > statement_timestamp() - ${interval}
                        AND e.created_at > clock_timestamp() - ${interval})`;
}

/**
 * Writes the audit log. An event is written in the transaction of the change that it records, so
 * that neither is committed without the other.
 */
@Injectable()
export class AuditLog {
  readonly #listeners: ((committed: CommittedActs) => void)[] = [];

  /**
   * Registers a function that is called with the acts of an event once the transaction of the event
   * has committed.
   */
  onCommittedActs(listener: (committed: CommittedActs) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Records an event in the transaction of the change, and writes a notice for each person who must
   * know of the event.
   *
   * @param atMostEvery the seconds in which one event of this type about one subject is enough; by
   *   default every event is recorded
   */
  async record(
    tx: EntityManager,
    event: AuditEvent,
    { atMostEvery }: { readonly atMostEvery?: number } = {},
  ): Promise<void> {
    const auditId = newUuid();
    const source = atMostEvery === undefined ? undefined : unlessSince(event, atMostEvery);
    await sql(tx)`${recordAudit({ ...event, id: auditId }, source)}`;
    const { type, actorId, subjectId, orgId, details, acts = [] } = event;
    if (isNoticed(type) && isTold(type, details)) {
      const text = details?.['name'] ?? details?.['description'];
      const name = typeof text === 'string' ? text : undefined;
      const token = details?.['api_token'];
      const program = typeof token === 'string' ? `The API token ${token}` : null;
      await notePeople(tx, { type, auditId, actorId, subjectId, orgId, name, program });
    }
    if (acts.length === 0 || this.#listeners.length === 0) return;
    afterCommit(tx, () => this.#listeners.forEach((listener) => listener({ auditId, acts })));
  }
}
