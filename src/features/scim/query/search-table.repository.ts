import { hash } from 'node:crypto';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { composedSql } from '#platform/database/statements/sql.js';
import { readCursor, SEARCH_LENGTH, writeCursor, type Position } from './cursor.js';
import { conditionOf, type Condition } from './filter-condition.js';
import type { FilterFields } from './filter-fields.js';
import type { AttributeReference, Filter } from '../language/scim-language.js';
import { keyOf, type Comparison, type UniqueKeys } from './unique-key.js';
import { sortExpression, type Sort } from './sort-expression.js';

/**
 * A parsed search (RFC 7644 §3.4.2), and the requested page of its result (RFC 7644 §3.4.2.4, RFC
 * 9865).
 */
export interface ScimSearch {
  readonly filter: Filter | undefined;
  readonly sort: { readonly target: AttributeReference; readonly descending: boolean } | undefined;
  /** The largest number of resources on the page. */
  readonly count: number;
  readonly page:
    | { readonly kind: 'index'; /** From 1. */ readonly startIndex: number }
    | { readonly kind: 'cursor'; /** Empty for the first page. */ readonly cursor: string };
  /** True if the response shows attributes of users that are only in the JSON column. */
  readonly withAttributes: boolean;
  /** True if the response, or the version of a user in it, needs the groups of users. */
  readonly withRelations: boolean;
}

/** A page of the resources that a search found. */
export interface ScimPage<Resource> {
  readonly totalResults: number;
  readonly resources: readonly Resource[];
  /** The cursor of the next page; undefined on the last page and for a search by index. */
  readonly nextCursor: string | undefined;
}

/**
 * The SQL that describes a searched table. The expressions come from a repository, never from a
 * client.
 */
export interface SearchedTable<Row, Resource> {
  readonly from: string;
  readonly id: string;
  readonly orgId: string;
  /** The SQL of a condition that a resource must meet to be in a list. `$1` is the organization. */
  readonly shown?: string;
  readonly fields: FilterFields;
  readonly unique: UniqueKeys;
  /**
   * The paths of further attributes with an index. Few resources have the same value of such an
   * attribute, so that a search by it is fast.
   */
  readonly keys: ReadonlySet<string>;
  /**
   * The statement that reads the resources of the page. The ids of the page are in the table
   * expression `listed (id, sort_value, place)`, and the rows are returned by `place`. `$1` is the
   * organization.
   */
  readonly show: string;
  /** The columns that a search for one resource reads directly from the table, without `show`. */
  readonly columns: string;
  readonly read: (row: Row) => Resource;
}

/** The SQL of a condition on the rows of a table, and the values of its placeholders. */
interface Within {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * Searches a table within one organization. A page needs one statement, and a second one to count
 * the matches if the total does not follow from the page. Resources with equal sort values are in
 * the order of their ids, so that the order is the same on every page.
 *
 * The statements are written so that wrong statistics of PostgreSQL cannot lead to a slow plan:
 *
 * - A search by a unique key has neither order nor limit.
 * - A search by another indexed key materializes its matches before they are sorted.
 * - A list without filter and order compares the organization by a range (`BETWEEN $1 AND $1`).
 *   Only the index by organization and id then delivers the rows in order.
 *
 * @throws DomainError invalid_filter; invalid_value for an attribute that has no order;
 *   invalid_cursor for a cursor of another search or organization
 */
export async function searchTable<Row extends Position, Resource>(
  tx: EntityManager,
  orgId: string,
  search: ScimSearch,
  table: SearchedTable<Row, Resource>,
): Promise<ScimPage<Resource>> {
  const matches: Condition = search.filter
    ? conditionOf(search.filter, table.fields, 2)
    : { text: 'true', values: [] };
  const within: Within = {
    text: `${table.orgId} = $1 AND (${matches.text})${alsoShown(table)}`,
    values: [orgId, ...matches.values],
  };
  const begin = beginOf(orgId, search, table.fields);
  const key = search.filter && keyOf(search.filter, (path) => Object.hasOwn(table.unique, path));
  if (key) return findOne(tx, search, begin, table, withKey(within, key, table.unique));
  // The page is found by the ids alone, so that the database builds no resource of the pages before
  // it.
  const found = search.count === 0 ? [] : await findPage(tx, search, begin, table, within);
  const rows = found.slice(0, search.count);
  const last = rows.at(-1);
  const goesOn = found.length > search.count;
  return {
    totalResults:
      (goesOn ? undefined : totalAtEnd(search, rows.length)) ??
      (await countOf(tx, table.from, within)),
    resources: rows.map(table.read),
    nextCursor:
      search.page.kind === 'cursor' && goesOn && last
        ? writeCursor(last, fingerprintOf(orgId, search, table.fields))
        : undefined,
  };
}

/** The order of a search, and the position after which its page begins. */
interface Begin {
  readonly sort: Sort | undefined;
  /** The position in the cursor; undefined for the first page, and for a page by index. */
  readonly after: Position | undefined;
}

/**
 * Reads the order and the cursor of a search. The function runs before any look-up, so that a
 * faulty cursor is refused even if the page shows no resource.
 */
function beginOf(orgId: string, search: ScimSearch, fields: FilterFields): Begin {
  const { page } = search;
  return {
    sort: search.sort && sortExpression(search.sort.target, fields),
    after:
      page.kind === 'cursor' && page.cursor !== ''
        ? readCursor(page.cursor, fingerprintOf(orgId, search, fields))
        : undefined,
  };
}

function alsoShown({ shown }: { readonly shown?: string }): string {
  return shown === undefined ? '' : ` AND ${shown}`;
}

/**
 * Puts the comparison with the unique key before the condition, so that PostgreSQL uses the index
 * of the key.
 */
function withKey(
  { text, values }: Within,
  { target, value }: Comparison,
  unique: UniqueKeys,
): Within {
  const expression = unique[target.path];
  if (expression === undefined) return { text, values };
  return {
    text: `${expression} = $1::uuid::text || $${values.length + 1}::text AND ${text}`,
    values: [...values, asciiLowerCase(String(value))],
  };
}

/** Finds the only resource with a unique key. The kind of page and the order make no difference. */
async function findOne<Row extends Position, Resource>(
  tx: EntityManager,
  search: ScimSearch,
  { after }: Begin,
  table: SearchedTable<Row, Resource>,
  within: Within,
): Promise<ScimPage<Resource>> {
  const { page } = search;
  const rows = await composedSql<Row>(
    tx,
    `SELECT ${table.columns}, NULL::text AS sort_value FROM ${table.from} WHERE ${within.text}`,
    within.values,
  );
  const isBefore = page.kind === 'index' ? page.startIndex > 1 : after !== undefined;
  const isShown = search.count > 0 && !isBefore;
  return {
    totalResults: rows.length,
    resources: isShown ? rows.map(table.read) : [],
    nextCursor: undefined,
  };
}

/**
 * Reads the resources of a page. If there is a next page, its first resource is returned too, so
 * that the caller notices the next page.
 */
function findPage<Row extends Position>(
  tx: EntityManager,
  search: ScimSearch,
  { sort, after: position }: Begin,
  table: SearchedTable<Row, unknown>,
  within: Within,
): Promise<Row[]> {
  const { filter, page } = search;
  const values: unknown[] = [...within.values];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const descending = search.sort?.descending ?? false;
  const direction = descending ? 'DESC NULLS FIRST' : 'ASC NULLS LAST';
  const order = sort ? `sort_value ${direction}, id` : 'org_id, id';
  const isPlain = filter === undefined && sort === undefined;
  const condition = isPlain ? `${table.orgId} BETWEEN $1 AND $1${alsoShown(table)}` : within.text;
  let after = 'true';
  let offset = '';
  if (page.kind === 'index') offset = `OFFSET ${bind(page.startIndex - 1)}`;
  else if (position) {
    after = isPlain
      ? `(org_id, id) > ($1, ${bind(position.id)}::uuid)`
      : afterPosition(position, { sort, descending, bind });
  }
  // Matches of an indexed key are materialized before the sort. Otherwise PostgreSQL might read the
  // whole organization in the order of the sort.
  const isFoundFirst =
    filter !== undefined && keyOf(filter, (path) => table.keys.has(path)) !== undefined;
  return composedSql<Row>(
    tx,
    `WITH found AS ${isFoundFirst ? '' : 'NOT '}MATERIALIZED (
       SELECT ${table.orgId} AS org_id, ${table.id} AS id, ${sort?.expression ?? 'NULL::text'} AS sort_value
       FROM ${table.from} WHERE ${condition}
     ), page AS MATERIALIZED (
       SELECT org_id, id, sort_value FROM found WHERE ${after} ORDER BY ${order} LIMIT ${bind(search.count + 1)} ${offset}
     ), listed AS (
       SELECT id, sort_value, row_number() OVER (ORDER BY ${order}) AS place FROM page
     )
     ${table.show}`,
    values,
  );
}

/**
 * Returns the total number of matches of a search whose last page was read. Returns undefined if
 * the total does not follow from this page, so that a second statement must count.
 */
function totalAtEnd({ page, count }: ScimSearch, found: number): number | undefined {
  if (count === 0) return undefined;
  const before = page.kind === 'index' ? page.startIndex - 1 : 0;
  const isFirst = page.kind === 'index' ? before === 0 : page.cursor === '';
  return isFirst || (found > 0 && page.kind === 'index') ? before + found : undefined;
}

async function countOf(tx: EntityManager, from: string, { text, values }: Within): Promise<number> {
  const counting = `SELECT count(*) AS n FROM ${from} WHERE ${text}`;
  const [row] = await composedSql<{ n: string }>(tx, counting, values);
  return Number(row?.n);
}

interface Order {
  readonly sort: Sort | undefined;
  readonly descending: boolean;
  readonly bind: (value: unknown) => string;
}

/**
 * Returns the condition for resources after the position in a cursor. If resources are deleted or
 * added between two pages, no other resource is skipped or repeated.
 */
function afterPosition(position: Position, { sort, descending, bind }: Order): string {
  const later = `id > ${bind(position.id)}::uuid`;
  if (sort === undefined) return later;
  if (position.sort_value === null) {
    return descending
      ? `(sort_value IS NOT NULL OR (sort_value IS NULL AND ${later}))`
      : `(sort_value IS NULL AND ${later})`;
  }
  const value = `${bind(position.sort_value)}::text COLLATE "C"`;
  if (sort.isRequired) {
    // The first comparison lets an index scan start at the value of the cursor, so that the scan
    // does not read the pages before it.
    const [beyond, from] = descending ? ['<', '<='] : ['>', '>='];
    return `(sort_value ${from} ${value} AND (sort_value ${beyond} ${value} OR ${later}))`;
  }
  return descending
    ? `(sort_value < ${value} OR (sort_value = ${value} AND ${later}))`
    : `(sort_value > ${value} OR (sort_value = ${value} AND ${later}) OR sort_value IS NULL)`;
}

/**
 * Returns a hash of the organization, the resource type, the filter and the order of a search. With
 * it, a cursor is valid for no other search.
 */
function fingerprintOf(
  orgId: string,
  { filter, sort }: ScimSearch,
  { resource }: FilterFields,
): Buffer {
  const search = JSON.stringify([
    orgId,
    resource.core.id,
    filter ?? null,
    sort?.target.path ?? null,
    sort?.descending ?? null,
  ]);
  return hash('sha256', search, 'buffer').subarray(0, SEARCH_LENGTH);
}
