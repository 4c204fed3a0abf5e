import {
  TIES,
  tiesOfRow,
  type TiesOfMember,
  type TiesRow,
} from '#domain/directory/users.repository.js';
import { composedSql, constantText } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import {
  conditionsOnKey,
  conditionsOnMember,
  partsOfSearch,
  type Bind,
} from './member-conditions.repository.js';
import { PAGE_SIZE, type MemberPlace, type MemberQuery } from './member-search.js';

/** A member as the list of members shows the member. */
export interface ListedMember {
  readonly id: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly isOrgAdmin: boolean;
  readonly active: boolean;
  readonly scimManaged: boolean;
  readonly createdAt: Date;
  readonly keys: number;
  /** The AAGUIDs (model ids) of the keys; null for a key whose attestation states none. */
  readonly aaguids: readonly (string | null)[];
  readonly lastUsedAt: Date | null;
  readonly ties: TiesOfMember;
  readonly place: MemberPlace;
}

/**
 * The members that a search found. `isComplete` is false if the search text matches too many
 * members, so that some may be missing.
 */
export interface FoundMembers {
  readonly members: readonly ListedMember[];
  readonly isComplete: boolean;
}

/**
 * A row of the result. If no member was found, there is one row without an id, which only states if
 * the search was complete.
 */
interface Row extends TiesRow {
  id: string | null;
  email: string | null;
  name: string | null;
  is_org_admin: boolean;
  active: boolean;
  scim_managed: boolean;
  created_at: Date;
  key_count: number;
  place: string;
  aaguids: (string | null)[];
  last_used_at: Date | null;
  complete: boolean;
}

type FoundRow = Row & { readonly id: string };

/**
 * The SQL for each way to sort the list. Each way has an index that begins with the organization.
 */
const ORDERS = {
  added: {
    value: 'u.id::text',
    by: 'u.id',
    after: (value: string) => `(u.org_id, u.id) > ($1, ${value}::uuid)`,
  },
  address: {
    value: 'u.email_key',
    by: 'u.email_key COLLATE "C"',
    after: (value: string) => `u.email_key COLLATE "C" > ${value}`,
  },
  last_use: {
    value: 'u.key_used_on::text',
    by: 'u.key_used_on, u.id',
    after: (value: string, id: string) => `(u.key_used_on, u.id) > (${value}::date, ${id}::uuid)`,
  },
} as const;

/**
 * Lists, by one statement, one page of the members of an organization that match a search, in the
 * order that the search asks for.
 */
export async function searchMembers(
  tx: EntityManager,
  orgId: string,
  query: MemberQuery,
): Promise<FoundMembers> {
  const values: unknown[] = [orgId];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const rows = await composedSql<Row>(tx, searchText(query, bind), values);
  const order = query.sort ?? 'added';
  return {
    members: rows
      .filter((row): row is FoundRow => row.id !== null)
      .map((row) => listedMember(row, order)),
    isComplete: rows.every(({ complete }) => complete),
  };
}

/**
 * Returns the SQL text of the search. The text depends on which filters are set and never on their
 * values, so that no value can become SQL.
 */
function searchText(query: MemberQuery, bind: Bind): string {
  const { sort = 'added', after, limit = PAGE_SIZE.usual } = query;
  const order = ORDERS[sort];
  const search = partsOfSearch(query, bind);
  const filters = [
    ...conditionsOnMember(query),
    ...usedBefore(query, bind),
    ...conditionsOnKey(query, bind).map(hasKey),
    ...search.conditions,
  ];
  // The condition on the organization is a range. With an equality, the planner could choose the
  // index on `id`. The index that begins with `org_id` has the order of the list.
  const isPlain = filters.length === 0 && sort === 'added';
  const conditions = [isPlain ? 'u.org_id BETWEEN $1 AND $1' : 'u.org_id = $1', ...filters];
  if (after) {
    conditions.push(
      order.after(
        bind(sort === 'added' ? after.id : after.value),
        sort === 'last_use' ? bind(after.id) : '',
      ),
    );
  }
  return `${search.before}
    SELECT c.complete, u.id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed, u.created_at, u.key_count, u.place,
           ARRAY(SELECT k.aaguid FROM authenticators k WHERE k.user_id = u.id ORDER BY k.created_at, k.id) AS aaguids,
           (SELECT max(k.last_used_at) FROM authenticators k WHERE k.user_id = u.id) AS last_used_at,
           ${constantText(TIES)}
    FROM (SELECT ${search.isComplete} AS complete) c
    LEFT JOIN (SELECT u.id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed, u.created_at, u.key_count,
                      u.email_key, u.key_used_on, u.taken_over_at, ${order.value} AS place
               FROM users u WHERE ${conditions.join(' AND ')}
               ORDER BY ${isPlain ? 'u.org_id, ' : ''}${order.by} LIMIT ${bind(limit + 1)}) u ON true
    ORDER BY ${order.by}`;
}

function usedBefore({ last_use: lastUse }: MemberQuery, bind: Bind): string[] {
  if (lastUse === undefined) return [];
  if (lastUse === 'never') return [`u.key_used_on = '-infinity'`];
  return [`u.key_used_on < (now() AT TIME ZONE 'UTC')::date - ${bind(lastUse)}::int`];
}

function hasKey(condition: string): string {
  return `EXISTS (SELECT FROM authenticators k WHERE k.user_id = u.id AND k.org_id = $1 AND ${condition})`;
}

function listedMember(row: FoundRow, order: MemberPlace['order']): ListedMember {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    isOrgAdmin: row.is_org_admin,
    active: row.active,
    scimManaged: row.scim_managed,
    createdAt: row.created_at,
    keys: row.key_count,
    aaguids: row.aaguids,
    lastUsedAt: row.last_used_at,
    ties: tiesOfRow(row),
    place: { order, value: row.place, id: row.id },
  };
}
