import type { Conditions } from '#domain/access/reach/decision.js';
import {
  admits,
  fittingTouchSql,
  hasConditionsSql,
  isMetBy,
} from '#domain/access/reach/reach.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** The facts that decide if one user may get tokens of an installation in one session. */
export interface InstallationReach {
  readonly isReached: boolean;
  /** True if the access rule of the installation does not admit everyone, or has conditions. */
  readonly isRestricted: boolean;
  /**
   * All conditions of the installation, if no touch of a security key in the session meets all of
   * them; otherwise undefined.
   */
  readonly unmet: Conditions | undefined;
}

interface Row {
  id: string;
  is_reached: boolean;
  is_restricted: boolean;
  is_met: boolean;
  touch_within_seconds: number | null;
  models: 'fips-only' | null;
  user_verification: 'required' | null;
}

/**
 * Reads for each installation of an organization, by its id, if the user may get tokens of it. The
 * caller uses this before it asks GitHub for a token. The statement that records the token decides
 * again, under its locks.
 */
export async function reachOfInstallations(
  tx: EntityManager,
  {
    orgId,
    userId,
    sessionId,
  }: { readonly orgId: string; readonly userId: string; readonly sessionId: string },
): Promise<ReadonlyMap<number, InstallationReach>> {
  const t = fragment`t`;
  const touch = fittingTouchSql(t, fragment`s.touches`);
  const rows = await sql<Row>(tx)`
    SELECT t.installation_id AS id, ${admits(t, fragment`${userId}::uuid`)} AS is_reached,
           (t.access = 'assigned' OR ${hasConditionsSql(t)}) AS is_restricted,
           CASE WHEN ${hasConditionsSql(t)} THEN ${isMetBy(t, touch)} ELSE true END AS is_met,
           t.touch_within_seconds, t.models, t.user_verification
    FROM access_targets t LEFT JOIN sessions s ON s.id = ${sessionId} AND s.user_id = ${userId}
    WHERE t.org_id = ${orgId} AND t.kind = 'github_installation'`;
  return new Map(rows.map((row) => [Number(row.id), reachOf(row)]));
}

function reachOf(row: Row): InstallationReach {
  const unmet = {
    touchWithinSeconds: row.touch_within_seconds,
    models: row.models,
    userVerification: row.user_verification,
  };
  return {
    isReached: row.is_reached,
    isRestricted: row.is_restricted,
    unmet: row.is_met ? undefined : unmet,
  };
}
