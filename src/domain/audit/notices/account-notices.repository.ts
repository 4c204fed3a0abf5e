import { newUuid } from '#platform/clock/random.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { NOTICED, type NoticedType } from './noticed-types.js';

/** The most notices that a page shows, the newest first. */
export const MOST_SHOWN = 20;

/** The days for which a notice is kept if the user never dismisses it. */
export const NOTICE_DAYS = 90;

/** The facts of an audit event from which notices to people are made. */
export interface NoticedEvent {
  readonly type: NoticedType;
  readonly auditId: string;
  readonly actorId: string | null;
  readonly subjectId: string | null;
  readonly orgId: string | null;
  /** The name of the key, the token or the receiver; undefined if the event has none. */
  readonly name: string | undefined;
  /** The program that acted, such as `The API token x`; null if a person or the operator did. */
  readonly program: string | null;
}

/** A notice of a change, such as of a new key, that a person has not read yet. */
export interface AccountNotice {
  readonly id: string;
  readonly type: string;
  /** The person who acted; null for the operator of the service and for a program. */
  readonly actorId: string | null;
  readonly subjectId: string | null;
  /**
   * The e-mail addresses of the person who acted and of the person concerned, at the time of the
   * event. If a program acted, `actor` names its API token.
   */
  readonly actor: string | null;
  readonly subject: string | null;
  readonly name: string | null;
  readonly createdAt: Date;
}

/**
 * Writes a notice of an event for each person who must know of the event. There is one exception: a
 * user who became an admin by the own sign-in, such as the first person of an organization, gets no
 * notice of that promotion. No row of a user is locked.
 */
export async function notePeople(tx: EntityManager, event: NoticedEvent): Promise<void> {
  const { type, auditId, actorId, subjectId, orgId, name = null, program } = event;
  const hears: readonly string[] = NOTICED[type];
  await sql(tx)`
    INSERT INTO account_notices (user_id, id, audit_id, type, actor_id, subject_id, actor, subject, name)
    SELECT h.id, ${newUuid()}, ${auditId}, ${type}, ${actorId}::uuid, ${subjectId}::uuid, coalesce(${addressOf(actorId)}, ${program}), ${addressOf(subjectId)}, ${name}
    FROM (
      SELECT u.id FROM users u WHERE u.id = ${subjectId}::uuid AND ${hears.includes('subject')}
      UNION
      SELECT u.id FROM users u
      WHERE u.org_id = ${orgId}::uuid AND u.is_org_admin AND ${hears.includes('admins')}
        AND is_acting_admin(u.org_id, u.email, u.is_org_admin, u.active)
    ) h
    WHERE NOT (${type} = 'admin_promote' AND h.id = ${subjectId}::uuid AND h.id IS NOT DISTINCT FROM ${actorId}::uuid)`;
}

/** Returns the SQL of the present e-mail address of a user; NULL without a user. */
function addressOf(userId: string | null): SqlFragment {
  return fragment`(SELECT p.email FROM users p WHERE p.id = ${userId}::uuid)`;
}

/** A notice about an account that its user has not read. */
export interface UnreadNotice {
  readonly id: string;
  /** The type of the audit event, such as `key_registered`. */
  readonly type: string;
}

/**
 * Returns the SQL of the newest notice that a user has not read, as a JSON object with `id` and
 * `type`; NULL if there is none.
 */
export function newestNotice(userId: SqlFragment): SqlFragment {
  return fragment`(
    SELECT json_build_object('id', n.id, 'type', n.type) FROM account_notices n
    WHERE n.user_id = ${userId} ORDER BY n.user_id DESC, n.id DESC LIMIT 1)`;
}

/** Lists the notices that a user has not read, the newest first, at most {@link MOST_SHOWN}. */
export function listNotices(tx: EntityManager, userId: string): Promise<AccountNotice[]> {
  return sql<AccountNotice>(tx)`
    SELECT id, type, actor_id AS "actorId", subject_id AS "subjectId", actor, subject, name, created_at AS "createdAt"
    FROM account_notices WHERE user_id = ${userId} ORDER BY id DESC LIMIT ${MOST_SHOWN}`;
}

/**
 * Removes the notices that a user has seen. It removes only those that the page showed, because
 * newer ones are unread, and only those of this user.
 *
 * @param shown the ids of the notices that the page showed
 */
export async function dismissNotices(
  tx: EntityManager,
  userId: string,
  shown: readonly string[],
): Promise<void> {
  await sql(tx)`
    DELETE FROM account_notices WHERE user_id = ${userId} AND id = ANY (${shown}::uuid[])`;
}
