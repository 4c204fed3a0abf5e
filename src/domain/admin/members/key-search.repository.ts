import { modelName, sortedNames } from '#domain/keys/authenticators/authenticator-models.js';
import { composedSql, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { PAGE_SIZE } from './member-search.js';
import {
  conditionsOnKey,
  conditionsOnMember,
  partsOfSearch,
  type Bind,
} from './member-conditions.repository.js';
import type { KeyQuery } from './key-search.js';

/** A security key of a member, as the list of keys shows it. */
export interface ListedKey {
  readonly id: string;
  readonly name: string;
  /** The id of the model; null for a key whose attestation states none. */
  readonly aaguid: string | null;
  readonly userVerification: boolean;
  /** The format of the attestation by which the key was enrolled. */
  readonly attestation: 'packed' | 'fido-u2f';
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly memberId: string;
  readonly memberEmail: string | null;
  readonly memberName: string | null;
  readonly isMemberActive: boolean;
}

/**
 * The keys that a search found. `isComplete` is false if the search text matches too many members,
 * so that keys may be missing.
 */
export interface FoundKeys {
  readonly keys: readonly ListedKey[];
  readonly isComplete: boolean;
}

/**
 * A row of the result. If no key was found, there is one row without an id, which only states if
 * the search was complete.
 */
type Row = Omit<ListedKey, 'id'> & { readonly id: string | null; readonly complete: boolean };

/**
 * Lists, by one statement, one page of the security keys that match a search, of all members of an
 * organization. The keys are sorted by the id of the member and then by their own id.
 *
 * @returns up to one key more than the limit of the query, so that the caller sees if another page
 *   follows
 */
export async function searchKeys(
  tx: EntityManager,
  orgId: string,
  query: KeyQuery,
): Promise<FoundKeys> {
  const values: unknown[] = [orgId];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const rows = await composedSql<Row>(tx, searchText(query, bind), values);
  return {
    keys: rows.filter((row): row is Row & { readonly id: string } => row.id !== null),
    isComplete: rows.every(({ complete }) => complete),
  };
}

/**
 * Returns the SQL text of the search. The text depends on which filters are set and never on their
 * values, so that no value can become SQL.
 */
function searchText(query: KeyQuery, bind: Bind): string {
  const { after, limit = PAGE_SIZE.usual } = query;
  const search = partsOfSearch(query, bind);
  const onKey = [
    'k.user_id = u.id',
    ...conditionsOnKey(query, bind),
    ...usedBefore(query, bind),
  ].join(' AND ');
  // The condition on the organization is a range. With an equality, the planner could choose the
  // index on `id`. The index that begins with `org_id` has the order of the list.
  const onMember = [
    'u.org_id BETWEEN $1 AND $1',
    ...conditionsOnMember(query),
    ...search.conditions,
    `EXISTS (SELECT FROM authenticators k WHERE ${onKey})`,
  ];
  const onPlace: string[] = [];
  if (after) {
    const [member, key] = [`${bind(after.memberId)}::uuid`, `${bind(after.keyId)}::uuid`];
    onMember.push(`(u.org_id, u.id) >= ($1, ${member})`);
    onPlace.push(`AND (u.id, k.id) > (${member}, ${key})`);
  }
  // Each of these members has a matching key, but the keys of the first one may all be before the
  // cursor. So the `limit + 1` keys belong to the first `limit + 2` members.
  const members = `SELECT u.id, u.email, u.name, u.active FROM users u WHERE ${onMember.join(' AND ')}
                   ORDER BY u.org_id, u.id LIMIT ${bind(limit + 2)}`;
  return `${search.before}
    SELECT c.complete, k.*
    FROM (SELECT ${search.isComplete} AS complete) c
    LEFT JOIN (SELECT k.id, k.name, k.aaguid, k.user_verification AS "userVerification", k.attestation,
                      k.created_at AS "createdAt", k.last_used_at AS "lastUsedAt", u.id AS "memberId",
                      u.email AS "memberEmail", u.name AS "memberName", u.active AS "isMemberActive"
               FROM (${members}) u JOIN authenticators k ON ${onKey} ${onPlace.join('')}
               ORDER BY u.id, k.id LIMIT ${bind(limit + 1)}) k ON true
    ORDER BY k."memberId", k.id`;
}

function usedBefore({ last_use: lastUse }: KeyQuery, bind: Bind): string[] {
  if (lastUse === undefined) return [];
  if (lastUse === 'never') return ['k.last_used_at IS NULL'];
  const today = `(now() AT TIME ZONE 'UTC')::date`;
  const day = `(k.last_used_at AT TIME ZONE 'UTC')::date`;
  return [`(k.last_used_at IS NULL OR ${day} < ${today} - ${bind(lastUse)}::int)`];
}

/** The models of the keys that the members of an organization have. */
export interface HeldModels {
  /** The vendor's names of the known models, sorted. */
  readonly names: readonly string[];
  /** True if a member has a key whose model is not in the table of known models. */
  readonly hasUnknown: boolean;
}

/**
 * The most AAGUIDs (ids of key models) that the statement reads. There are some dozens at most,
 * because the service accepts only models that their vendor attests.
 */
const MOST_AAGUIDS = 1_000;

/**
 * Returns the models of the keys of an organization. The statement looks up one entry of an index
 * for each model, however many keys there are.
 */
export async function listHeldModels(tx: EntityManager, orgId: string): Promise<HeldModels> {
  const [row] = await sql<{ aaguids: string[]; has_none: boolean }>(tx)`
    WITH RECURSIVE held (aaguid) AS (
      (SELECT aaguid FROM authenticators WHERE org_id = ${orgId} AND aaguid IS NOT NULL
       ORDER BY aaguid LIMIT 1)
      UNION ALL
      SELECT (SELECT k.aaguid FROM authenticators k WHERE k.org_id = ${orgId} AND k.aaguid > h.aaguid
              ORDER BY k.aaguid LIMIT 1)
      FROM held h WHERE h.aaguid IS NOT NULL)
    SELECT ARRAY(SELECT aaguid FROM held WHERE aaguid IS NOT NULL LIMIT ${MOST_AAGUIDS}) AS aaguids,
           EXISTS (SELECT FROM authenticators WHERE org_id = ${orgId} AND aaguid IS NULL) AS has_none`;
  if (!row) throw new Error('SELECT returned no row');
  const names = row.aaguids.map(modelName);
  return {
    names: sortedNames(names.filter((name) => name !== null)),
    hasUnknown: row.has_none || names.includes(null),
  };
}
