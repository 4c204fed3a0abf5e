import {
  aaguidsOfModel,
  FIPS_AAGUIDS,
  KNOWN_AAGUIDS,
} from '#domain/keys/authenticators/authenticator-models.js';
import {
  IS_SHARED,
  TIES,
  tiesOfRow,
  type TiesOfMember,
  type TiesRow,
} from '#domain/directory/users.repository.js';
import { composedSql, constantText } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { UNKNOWN_MODEL, type MemberPlace, type MemberQuery } from './member-search.js';

/**
 * The most members that a search finds by each of its three ways (address, name, last word of the
 * name). If there are more, the user must type a longer text.
 */
export const MOST_FOUND = 1000;

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

/** The members that a search found. `isComplete` is false if more members may match its text. */
export interface FoundMembers {
  readonly members: readonly ListedMember[];
  readonly isComplete: boolean;
}

/**
 * A row of the result. A row without an id is no member; it only states if the search was complete.
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

type Bind = (value: unknown) => string;

/**
 * The SQL of the values by which the list can be sorted. Each has an index that begins with the
 * organization.
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
 * The greatest character. A text with this character at its end sorts after every text with the
 * same beginning.
 */
const LAST = '\u{10FFFF}';

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
 * Returns the text of the statement. The text depends on which filters are set and never on their
 * values, so that no value can become SQL.
 */
function searchText(query: MemberQuery, bind: Bind): string {
  const { q, sort = 'added', after, limit } = query;
  const order = ORDERS[sort];
  const filters = filtersOf(query, bind);
  if (q !== undefined) filters.push('u.id IN (SELECT f.id FROM found f)');
  // Written as a range, the condition lets every plan use the index of the organization, which is
  // sorted like the list. If it were an equality, the planner could choose the index of the ids
  // instead.
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
  const found = q === undefined ? '' : `WITH found AS MATERIALIZED (${foundBy(q, bind)})`;
  const complete = q === undefined ? 'true' : `(SELECT count(*) FROM found) < ${MOST_FOUND}`;
  return `${found}
    SELECT c.complete, u.id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed, u.created_at, u.key_count, u.place,
           ARRAY(SELECT k.aaguid FROM authenticators k WHERE k.user_id = u.id ORDER BY k.created_at, k.id) AS aaguids,
           (SELECT max(k.last_used_at) FROM authenticators k WHERE k.user_id = u.id) AS last_used_at,
           ${constantText(TIES)}
    FROM (SELECT ${complete} AS complete) c
    LEFT JOIN (SELECT u.id, u.email, u.name, u.is_org_admin, u.active, u.scim_managed, u.created_at, u.key_count,
                      u.email_key, u.key_used_on, u.taken_over_at, ${order.value} AS place
               FROM users u WHERE ${conditions.join(' AND ')}
               ORDER BY ${isPlain ? 'u.org_id, ' : ''}${order.by} LIMIT ${bind(limit + 1)}) u ON true
    ORDER BY ${order.by}`;
}

/**
 * Returns the SQL conditions of the filters. Constants are in the text and not parameters, so that
 * PostgreSQL can use the partial indexes.
 */
function filtersOf(query: MemberQuery, bind: Bind): string[] {
  const { role, status, tie, keys, last_use: lastUse, model, fips } = query;
  const conditions: string[] = [];
  if (role !== undefined)
    conditions.push(role === 'admin' ? 'u.is_org_admin' : 'NOT u.is_org_admin');
  if (status !== undefined) conditions.push(status === 'active' ? 'u.active' : 'NOT u.active');
  if (tie !== undefined) conditions.push(TIED[tie]);
  if (keys !== undefined) conditions.push(KEYS[keys]);
  if (lastUse === 'never') conditions.push(`u.key_used_on = '-infinity'`);
  if (typeof lastUse === 'number') {
    conditions.push(`u.key_used_on < (now() AT TIME ZONE 'UTC')::date - ${bind(lastUse)}::int`);
  }
  if (model === UNKNOWN_MODEL) conditions.push(hasKey(isNotOf(bind(KNOWN_AAGUIDS))));
  else if (model !== undefined) conditions.push(hasKey(isOf(bind(aaguidsOfModel(model)))));
  if (fips !== undefined) {
    const models = bind(FIPS_AAGUIDS);
    conditions.push(hasKey(fips ? isOf(models) : isNotOf(models)));
  }
  return conditions;
}

const KEYS = {
  none: 'u.key_count = 0',
  one: 'u.key_count = 1',
  several: 'u.key_count > 1',
} as const;

const tied = (kind: 'twin' | 'link') =>
  `u.id IN (SELECT t.user_id FROM record_ties t WHERE t.org_id = $1 AND t.kind = '${kind}'
            UNION SELECT t.record_id FROM record_ties t WHERE t.org_id = $1 AND t.kind = '${kind}')`;

const TIED = {
  twin: tied('twin'),
  linked: tied('link'),
  taken_over: 'u.taken_over_at IS NOT NULL',
  no_address: `(u.email IS NULL OR EXISTS (SELECT FROM record_addresses a
    WHERE a.user_id = u.id AND (a.withheld AND a.rank IS NOT NULL OR ${constantText(IS_SHARED)})))`,
} as const;

const isOf = (models: string) => `k.aaguid = ANY (${models}::uuid[])`;
/**
 * Returns the SQL condition that the model of a key is none of some models. It is not written as
 * `<> ALL`, because the planner would then multiply the frequencies of the models, as if one key
 * had several models. For `= ANY` it adds the frequencies up.
 */
const isNotOf = (models: string) => `(k.aaguid = ANY (${models}::uuid[])) IS NOT TRUE`;

function hasKey(condition: string): string {
  return `EXISTS (SELECT FROM authenticators k WHERE k.user_id = u.id AND k.org_id = $1 AND ${condition})`;
}

/**
 * Returns the part of the statement that finds members by the beginning of a text. It searches in
 * three ways: by the address, by the name, and by the last word of the name. Each way reads at most
 * {@link MOST_FOUND} entries of an index.
 */
function foundBy(q: string, bind: Bind): string {
  const text = bind(q);
  const last = bind(LAST);
  const name = `lower(left(${text}, 64))`;
  const ways = [
    ['u.email_key COLLATE "C"', `lower(${text} COLLATE "C")`],
    ['lower(left(u.name, 64)) COLLATE "C"', name],
    [`lower(left(substring(u.name FROM '[^ ]+$'), 64)) COLLATE "C"`, name],
  ] as const;
  const ranges = ways.map(
    ([value, from]) =>
      `(SELECT u.id FROM users u WHERE u.org_id = $1 AND ${value} >= ${from} AND ${value} < ${from} || ${last}
        ORDER BY ${value} LIMIT ${MOST_FOUND})`,
  );
  return ranges.join(' UNION ');
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
