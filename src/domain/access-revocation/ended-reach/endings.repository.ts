import { OTHER } from '#domain/audit/search-keys.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { TargetKind } from '#domain/access/reach/decision.js';
import {
  admits,
  fittingTouchSql,
  hasConditionsSql,
  isMetBy,
  outlivesTouch,
} from '#domain/access/reach/reach.repository.js';
import type { EndedReach, EndedRule, Ending, Losers } from './reach-ending.js';

/**
 * The author of a change by which people may lose access to a target: an admin or a SCIM token.
 * `requestId` is the id of the HTTP request that made the change.
 */
export interface ChangedBy {
  readonly actorId?: string | null;
  readonly scimTokenId?: string | null;
  readonly requestId?: string | undefined;
}

interface Row {
  id: string;
  org_id: string;
  target_id: string;
  kind: TargetKind;
  client_id: string | null;
  installation_id: string | null;
  target_name: string;
  rule: EndedRule;
  user_ids: string[] | null;
  member_ids: string[] | null;
  place: string;
  actor_id: string | null;
  scim_token_id: string | null;
  request_id: string | null;
}

/** The columns of the table `access_endings` that a {@link Row} holds, as an SQL list. */
const COLUMNS = fragment`id, org_id, target_id, kind, client_id, installation_id, target_name, rule, user_ids, member_ids, place, actor_id,
  scim_token_id, request_id`;

/**
 * Notes who made the change of this transaction, in the rows that database triggers have put into
 * the queue because of the change. Returns the ids of these rows. The rows that list their people
 * come first. The request works on the rows in this order, and may leave the last ones to the
 * worker.
 */
export async function labelEndings(
  tx: EntityManager,
  { actorId = null, scimTokenId = null, requestId }: ChangedBy,
): Promise<string[]> {
  const rows = await sql<{ id: string }>(tx)`
    WITH labelled AS (
      UPDATE access_endings
      SET actor_id = ${actorId}, scim_token_id = ${scimTokenId}, request_id = ${requestId ?? null}
      WHERE made_in = pg_current_xact_id_if_assigned() RETURNING id, coalesce(user_ids, member_ids) AS people
    )
    SELECT id FROM labelled ORDER BY people IS NULL, id`;
  return rows.map(({ id }) => id);
}

/**
 * Locks and returns the next row of the queue after an id. It skips the rows that other processes
 * have locked. Returns undefined if there is none.
 */
export async function takeNextEnding(
  tx: EntityManager,
  afterId: string,
): Promise<Ending | undefined> {
  const [row] = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM access_endings WHERE id > ${afterId} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`;
  return row && ending(row);
}

/**
 * Locks and returns a row of the queue. If another process works on the row, the statement first
 * waits until that process has finished its batch. Returns undefined if the row was deleted after
 * its last batch.
 */
export async function takeEnding(tx: EntityManager, id: string): Promise<Ending | undefined> {
  const [row] = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM access_endings WHERE id = ${id} FOR UPDATE`;
  return row && ending(row);
}

/**
 * Stores in a row of the queue `access_endings` the credential after which the next batch of this
 * row begins. If there is no next batch, it deletes the row.
 */
export async function putEnding(
  tx: EntityManager,
  { id }: Ending,
  next: string | undefined,
): Promise<void> {
  if (next === undefined) await sql(tx)`DELETE FROM access_endings WHERE id = ${id}`;
  else await sql(tx)`UPDATE access_endings SET place = ${next} WHERE id = ${id}`;
}

/**
 * Records ended credentials by one audit event for each person. The event names the target and the
 * part of the access rules that changed. The event of a person of another organization, whom a rule
 * for everyone admitted, is in the log of that organization, and does not name the author of the
 * change. So neither organization learns of people of the other.
 */
export async function recordEnded(
  tx: EntityManager,
  by: Ending,
  ended: readonly EndedReach[],
): Promise<void> {
  if (ended.length === 0) return;
  const rows = ended.map(({ userId, counts }) => ({ id: newUuid(), user_id: userId, counts }));
  const people = fragment`FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS e (id uuid, user_id uuid, counts jsonb)
    LEFT JOIN users u ON u.id = e.user_id
    CROSS JOIN LATERAL (SELECT u.id IS NOT NULL AND u.org_id IS DISTINCT FROM ${by.orgId}::uuid AS is_outside) o`;
  const details = fragment`${JSON.stringify(detailsOf(by))}::jsonb
    - CASE WHEN o.is_outside THEN '{scim_token_id}'::text[] ELSE '{}' END || e.counts`;
  const orgId = fragment`CASE WHEN o.is_outside THEN u.org_id ELSE ${by.orgId}::uuid END`;
  const actorId = fragment`CASE WHEN NOT o.is_outside THEN ${by.actorId}::uuid END`;
  await sql(tx)`${recordAudit({ ...eventOf(by), orgId, actorId, details }, people)}`;
}

/**
 * Locks and returns the rows of the queue among some ids that list one person, who is the same in
 * all of them. It leaves out rows that other processes have locked.
 */
export async function takeOfPerson(tx: EntityManager, ids: readonly string[]): Promise<Ending[]> {
  const rows = await sql<Row>(tx)`
    SELECT ${COLUMNS} FROM access_endings
    WHERE id = ANY (${ids}::bigint[]) AND cardinality(user_ids) = 1
    ORDER BY id FOR UPDATE SKIP LOCKED`;
  const person = rows[0]?.user_ids?.[0];
  return rows.filter((row) => row.user_ids?.[0] === person).map(ending);
}

/** Returns those of some ids that are still in the queue, without waiting for their locks. */
export async function queuedAmong(tx: EntityManager, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }>(tx)`
    SELECT id FROM access_endings WHERE id = ANY (${ids}::bigint[])`;
  return rows.map(({ id }) => id);
}

/** Deletes rows of the queue for which nothing is left to do. */
export async function removeEndings(tx: EntityManager, endings: readonly Ending[]): Promise<void> {
  await sql(
    tx,
  )`DELETE FROM access_endings WHERE id = ANY (${endings.map(({ id }) => id)}::bigint[])`;
}

/**
 * Writes an audit event for each person in the lists of queued rows of one change who lost the
 * target without holding a credential for it. It leaves out people who already have an
 * `access_ended` event for the target since the change. It also leaves out inactive people, because
 * other events say what ended with their accounts. For the members of a group whose assignment was
 * removed it writes none, because these events together would show who is in the group.
 */
export async function recordWithoutCredentials(
  tx: EntityManager,
  endings: readonly Ending[],
): Promise<void> {
  const lists = endings.filter(({ userIds, isOfGroup }) => userIds !== null && !isOfGroup);
  const [by] = lists;
  if (!by) return;
  // Two rows of one change can be about the same person and target, who get one event.
  const rows = new Map(
    lists.flatMap((one) =>
      (one.userIds ?? []).map((userId) => [
        `${one.targetId} ${userId}`,
        {
          id: newUuid(),
          user_id: userId,
          ending: one.id,
          target_id: one.targetId,
          shown_id: targetIdOf(one),
          details: detailsOf(one),
        },
      ]),
    ),
  );
  const people = fragment`
    FROM jsonb_to_recordset(${JSON.stringify([...rows.values()])}::jsonb)
      AS e (id uuid, user_id uuid, ending bigint, target_id uuid, shown_id text, details jsonb)
    JOIN users u ON u.id = e.user_id JOIN access_endings q ON q.id = e.ending
    CROSS JOIN LATERAL (SELECT q.created_at AS since, e.shown_id AS target) w
    WHERE u.active AND u.org_id = ${by.orgId}
      AND NOT EXISTS (SELECT FROM access_targets t WHERE t.id = e.target_id AND ${admits(fragment`t`, fragment`u.id`)})
      AND NOT EXISTS (
        SELECT FROM audit_events e
        WHERE e.class = 'admin' AND e.subject_id = u.id AND e.type = 'access_ended' AND ${OTHER}
          AND e.details #>> '{target,id}' = w.target AND e.created_at >= w.since OFFSET 0)`;
  await sql(tx)`${recordAudit({ ...eventOf(by), details: fragment`e.details` }, people)}`;
}

/**
 * Returns the columns of an `access_ended` audit event. In the statement, `e` is the row of one
 * person who lost access.
 */
function eventOf(by: Ending) {
  return {
    id: fragment`e.id`,
    type: 'access_ended',
    actorId: by.actorId,
    subjectId: fragment`e.user_id`,
    orgId: by.orgId,
    origin: { requestId: by.requestId ?? newUuid(), ip: undefined, userAgent: undefined },
  } as const;
}

function detailsOf(by: Ending): object {
  const { kind, rule, targetName, scimTokenId } = by;
  const target = { kind, name: targetName, id: targetIdOf(by) };
  return { target, rule, ...(scimTokenId === null ? {} : { scim_token_id: scimTokenId }) };
}

/**
 * Returns the id by which admins know the target. It is the client id of an application, the number
 * of a GitHub installation, or for other targets the id in the database.
 */
function targetIdOf({ clientId, installationId, targetId }: Ending): string {
  return clientId ?? installationId ?? targetId;
}

/**
 * Returns the SQL condition that the target of a queued row does not admit a person any more. If
 * the conditions of the target changed, a touch in the session that got the credential must meet
 * the new conditions. A session that has ended does not meet them.
 *
 * @param touches the touches of security keys in the session, as JSON; NULL without a session
 * @param options.present the condition that a target `t` is the one to check; by default it is the
 *   target of the queued row, which may be deleted
 * @param options.ends the time at which the credential ends, for a kind that may not outlive the
 *   age that the conditions allow for a touch. A credential that ends later than the new conditions
 *   allow does not meet them.
 */
export function isRefusedNow(
  { targetId, rule }: Pick<Ending, 'targetId' | 'rule'>,
  userId: SqlFragment,
  touches: SqlFragment,
  {
    present = fragment`t.id = ${targetId}`,
    ends,
  }: { readonly present?: SqlFragment; readonly ends?: SqlFragment } = {},
): SqlFragment {
  const t = fragment`t`;
  const isMet =
    rule === 'condition'
      ? fragment`AND (NOT ${hasConditionsSql(t)} OR ${isMetInTime(t, touches, ends)})`
      : fragment``;
  return fragment`NOT EXISTS (
    SELECT FROM access_targets t WHERE ${present} AND ${admits(t, userId)} ${isMet})`;
}

/**
 * Returns the SQL condition that the touches of a session meet the conditions of a target. The
 * credential must also not end later than these conditions allow.
 *
 * @param ends the time at which the credential ends; undefined for a kind that may outlive the age
 *   that the conditions allow for a touch
 */
function isMetInTime(
  target: SqlFragment,
  touches: SqlFragment,
  ends: SqlFragment | undefined,
): SqlFragment {
  const touch = fittingTouchSql(target, touches);
  const isMet = isMetBy(target, touch);
  return ends ? fragment`(${isMet} AND NOT ${outlivesTouch(target, touch, ends)})` : isMet;
}

/**
 * Returns the SQL condition that a row of the queue `access_endings` is about a person. A row
 * without a list of ids is about every person.
 */
export function isAmong({ userIds }: Pick<Ending, 'userIds'>, userId: SqlFragment): SqlFragment {
  return userIds === null ? fragment`true` : fragment`${userId} = ANY (${userIds}::uuid[])`;
}

/**
 * Returns the SQL condition that a planned change may take a credential from a person. New
 * conditions may take it from everyone who is not left out; {@link loses} then decides.
 */
export function mayLose(losers: Losers, userId: SqlFragment): SqlFragment {
  if ('userIds' in losers) return isAmong(losers, userId);
  return fragment`${userId} <> ALL (${losers.except}::uuid[])`;
}

/**
 * Returns the SQL condition that a planned change takes a credential from a person for whom {@link
 * mayLose} holds. The touches are those of the session in which the person got the credential.
 *
 * @param touches the touches of security keys in the session, as JSON; NULL without a session
 * @param ends the time at which the credential ends; undefined for a kind that may outlive the age
 *   that the conditions allow for a touch
 */
export function loses(
  losers: Losers,
  userId: SqlFragment,
  touches: SqlFragment,
  ends?: SqlFragment,
): SqlFragment {
  if ('userIds' in losers) return fragment`true`;
  const { unmet, outsidersOf } = losers;
  const isOutside = outsidersOf
    ? fragment`(SELECT p.org_id FROM users p WHERE p.id = ${userId}) IS DISTINCT FROM ${outsidersOf}::uuid`
    : fragment`false`;
  if (!unmet) return isOutside;
  const w = fragment`w`;
  return fragment`(${isOutside} OR NOT coalesce((
    SELECT ${isMetInTime(w, touches, ends)}
    FROM (SELECT ${unmet.touchWithinSeconds}::int AS touch_within_seconds, ${unmet.models}::text AS models,
                 ${unmet.userVerification}::text AS user_verification) w), false))`;
}

function ending(row: Row): Ending {
  return {
    id: row.id,
    orgId: row.org_id,
    targetId: row.target_id,
    kind: row.kind,
    clientId: row.client_id,
    installationId: row.installation_id,
    targetName: row.target_name,
    rule: row.rule,
    userIds: row.user_ids ?? row.member_ids,
    isOfGroup: row.member_ids !== null,
    place: row.place,
    actorId: row.actor_id,
    scimTokenId: row.scim_token_id,
    requestId: row.request_id,
  };
}
