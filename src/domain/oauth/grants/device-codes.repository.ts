import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import { artifactStands } from '#domain/access/issuance/standing-rows.repository.js';

/**
 * The seconds by which the interval between two polls of a device grows after each poll that came
 * too soon (RFC 8628 §3.5).
 */
const SLOW_DOWN = 5;

/**
 * The number of wrong user codes in a row, less than {@link LOCK_MINUTES} apart, after which a user
 * is locked out.
 */
export const MOST_WRONG_TRIES = 5;

/**
 * The minutes for which a user is locked out after the last wrong user code. Wrong codes from
 * longer ago do not count.
 */
export const LOCK_MINUTES = 10;

/** The request of a device that waits for a user to approve it. */
export interface DeviceRequestRow {
  readonly id: Buffer;
  readonly clientId: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** True if the request is already approved, denied or redeemed. */
  readonly isDecided: boolean;
}

/**
 * The result of a try to find a device request by its user code, the short code that a device shows
 * and a user types. A user who is locked out may try again after `retryAfter` seconds. `gone` means
 * that the user does not exist any more.
 */
export type UserCodeTry =
  | { readonly kind: 'found'; readonly request: DeviceRequestRow }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'locked'; readonly retryAfter: number };

/** The approval of a device code by a user. */
export interface DeviceApprovalRow {
  readonly grantId: Buffer;
  readonly userId: string;
  /** The fields that the OAuth library expects in the payload of an approved device code. */
  readonly payload: object;
}

/** The error text for a user whose organization does not allow device codes. */
export const DEVICE_GRANT_IS_OFF =
  'Your organization has switched off the login by device codes. Log in in a browser instead.';

/**
 * Records that a device asked if its code is approved (a poll), and returns true if the poll came
 * too soon. A poll may come one second early, because clients count whole seconds and the delay of
 * a network varies.
 *
 * @param interval the seconds between two polls that the client was told at first; polls that came
 *   too soon have lengthened the stored interval
 */
export async function pollDeviceCode(
  tx: EntityManager,
  id: Buffer,
  interval: number,
): Promise<boolean> {
  const [row] = await sql<{ too_soon: boolean }>(tx)`
    UPDATE oauth_artifacts d
    SET polled_at = now(),
        poll_interval = coalesce(d.poll_interval, ${interval}) + CASE WHEN o.too_soon THEN ${SLOW_DOWN} ELSE 0 END
    FROM (
      SELECT model, id,
             coalesce(polled_at > now() - make_interval(secs => coalesce(poll_interval, ${interval}) - 1), false)
               AS too_soon
      FROM oauth_artifacts WHERE model = 'DeviceCode' AND id = ${id} AND consumed_at IS NULL
      FOR UPDATE
    ) o
    WHERE d.model = o.model AND d.id = o.id
    RETURNING o.too_soon`;
  return row?.too_soon ?? false;
}

/**
 * Finds a valid device code by its user code, and counts the try (RFC 8628 §5.1), by one statement.
 * Tries of one user at the same time run one after another, so that they cannot exceed the limit. A
 * right code does not reset the count. Otherwise an attacker could type the right code of the
 * attacker's own device between guesses at the codes of others. The row of the user is locked, so
 * that a user who is removed at the same time makes no foreign key fail.
 *
 * @param most the number of wrong tries that locks the user out
 */
export async function tryUserCode(
  tx: EntityManager,
  userId: string,
  userCode: string,
  most: number,
): Promise<UserCodeTry> {
  const [tried] = await sql<FoundRow>(tx)`
    WITH person AS MATERIALIZED (
      SELECT id FROM users WHERE id = ${userId} FOR KEY SHARE
    ), found AS MATERIALIZED (
      SELECT id, client_id, payload,
             consumed_at IS NOT NULL OR payload ->> 'accountId' IS NOT NULL OR payload ->> 'error' IS NOT NULL
               AS is_decided
      FROM oauth_artifacts
      WHERE model = 'DeviceCode' AND user_code = ${userCode} AND expires_at > now()
        AND ${artifactStands(fragment`oauth_artifacts`)}
      ORDER BY created_at DESC LIMIT 1
    ), tried AS (
      INSERT INTO oauth_user_code_tries AS t (user_id, wrong_tries, last_at)
      SELECT p.id, CASE WHEN EXISTS (SELECT 1 FROM found) THEN 0 ELSE 1 END, now() FROM person p
      ON CONFLICT (user_id) DO UPDATE SET
        wrong_tries = CASE WHEN t.last_at < now() - make_interval(mins => ${LOCK_MINUTES})
                      THEN EXCLUDED.wrong_tries ELSE t.wrong_tries + EXCLUDED.wrong_tries END,
        last_at = CASE WHEN EXCLUDED.wrong_tries = 0 AND t.last_at >= now() - make_interval(mins => ${LOCK_MINUTES})
                  THEN t.last_at ELSE EXCLUDED.last_at END
      WHERE t.wrong_tries < ${most} OR t.last_at < now() - make_interval(mins => ${LOCK_MINUTES})
      RETURNING user_id
    )
    SELECT t.user_id IS NOT NULL AS is_counted, f.id, f.client_id, f.payload, f.is_decided
    FROM person LEFT JOIN tried t ON true LEFT JOIN found f ON true`;
  if (!tried) return { kind: 'gone' };
  if (!tried.is_counted) return { kind: 'locked', retryAfter: await secondsLocked(tx, userId) };
  const { id, client_id: clientId, payload, is_decided: isDecided } = tried;
  return id === null
    ? { kind: 'wrong' }
    : { kind: 'found', request: { id, clientId, payload, isDecided } };
}

/**
 * Approves a device code. Returns true for exactly one caller, and for none if the code was denied
 * or redeemed before, or has expired.
 */
export async function approveDevice(
  tx: EntityManager,
  id: Buffer,
  approval: DeviceApprovalRow,
): Promise<boolean> {
  const won = await sql<{ model: string }>(tx)`
    UPDATE oauth_artifacts
    SET payload = payload || ${JSON.stringify(approval.payload)}::jsonb, grant_id = ${approval.grantId},
        user_id = ${approval.userId}
    WHERE model = 'DeviceCode' AND id = ${id} AND consumed_at IS NULL AND expires_at > now()
      AND payload ->> 'accountId' IS NULL AND payload ->> 'error' IS NULL
    RETURNING model`;
  return won.length === 1;
}

/**
 * Returns true if the people of an organization may approve devices, and locks the setting until
 * the transaction ends. The caller locks the row of the user first. A change of the setting locks
 * in the same order, so that the two transactions do not deadlock.
 */
export async function holdDeviceGrant(tx: EntityManager, orgId: string): Promise<boolean> {
  const held = await sql<{ id: string }>(tx)`
    SELECT id FROM organizations WHERE id = ${orgId} AND device_grant FOR SHARE`;
  return held.length === 1;
}

/**
 * Denies the request of a device by its user code. Like {@link approveDevice}, it returns true for
 * exactly one caller.
 */
export async function refuseDevice(tx: EntityManager, userCode: string): Promise<boolean> {
  const refusal = { error: 'access_denied', errorDescription: 'the person refused' };
  const won = await sql<{ model: string }>(tx)`
    UPDATE oauth_artifacts SET payload = payload || ${JSON.stringify(refusal)}::jsonb
    WHERE model = 'DeviceCode' AND user_code = ${userCode} AND consumed_at IS NULL AND expires_at > now()
      AND payload ->> 'accountId' IS NULL AND payload ->> 'error' IS NULL
    RETURNING model`;
  return won.length > 0;
}

async function secondsLocked(tx: EntityManager, userId: string): Promise<number> {
  const [row] = await sql<{ seconds: number }>(tx)`
    SELECT ceil(extract(epoch FROM last_at + make_interval(mins => ${LOCK_MINUTES}) - now()))::int AS seconds
    FROM oauth_user_code_tries WHERE user_id = ${userId}`;
  return Math.max(1, row?.seconds ?? 1);
}

/**
 * Ends the device codes of an organization, because its admins do not allow them any more. A code
 * that is approved but not redeemed gets no tokens any more. Sessions that device codes opened end
 * with everything that depends on them. Sessions are locked first, then grants, then codes, so that
 * no two transactions deadlock.
 */
export async function endDevicesOfOrganization(tx: EntityManager, orgId: string): Promise<void> {
  const sessions = await sql<{ id: string }>(tx)`
    SELECT s.id FROM sessions s JOIN users u ON u.id = s.user_id
    WHERE s.of_device AND u.org_id = ${orgId} ORDER BY s.id FOR UPDATE OF s`;
  const grants = await sql<{ id: Buffer }>(tx)`
    SELECT g.id FROM oauth_grants g
    WHERE g.id IN (SELECT a.grant_id FROM oauth_artifacts a JOIN users u ON u.id = a.user_id
                   WHERE a.model = 'DeviceCode' AND a.consumed_at IS NULL AND u.org_id = ${orgId})
    ORDER BY g.id FOR UPDATE`;
  const ids = grants.map(({ id }) => id);
  const refusal = { error: 'access_denied', errorDescription: DEVICE_GRANT_IS_OFF };
  await sql(tx)`
    UPDATE oauth_artifacts SET payload = payload || ${JSON.stringify(refusal)}::jsonb, grant_id = NULL
    WHERE model = 'DeviceCode' AND consumed_at IS NULL AND grant_id = ANY (${ids}::bytea[])`;
  await sql(tx)`DELETE FROM sessions WHERE id = ANY (${sessions.map(({ id }) => id)}::uuid[])`;
  await sql(tx)`DELETE FROM oauth_grants WHERE id = ANY (${ids}::bytea[])`;
}

/**
 * A row of the result of {@link tryUserCode}. `is_counted` is false for a user who is locked out.
 * All other columns are null if no valid request has the user code.
 */
interface FoundRow extends Pick<DeviceRequestRow, 'payload'> {
  readonly is_counted: boolean;
  readonly id: Buffer | null;
  readonly client_id: string;
  readonly is_decided: boolean;
}
