import { hash } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { composedSql, sql } from '#platform/database/sql.js';
import { readCursor, SEARCH_LENGTH, writeCursor, type Position } from './cursor.js';
import { conditionOf, type Condition, type FilterFields } from './filter-condition.js';
import type { Filter } from './filter.js';
import type { AttributeReference } from './schemas.js';
import { sortExpression, type Sort } from './sort-expression.js';

/** What a client searches for (RFC 7644 §3.4.2), and which page of it (RFC 7644 §3.4.2.4, RFC 9865). */
export interface ScimSearch {
  readonly filter: Filter | undefined;
  readonly sort: { readonly target: AttributeReference; readonly descending: boolean } | undefined;
  /** The most resources of a page. */
  readonly count: number;
  readonly page:
    | { readonly kind: 'index'; /** From 1. */ readonly startIndex: number }
    | { readonly kind: 'cursor'; /** Empty for the first page. */ readonly cursor: string };
  /** Whether the attributes of users are wanted that have no column. */
  readonly withAttributes: boolean;
  /** Whether what lies in other tables is wanted: the groups of users. */
  readonly withRelations: boolean;
}

/** A page of what was found. */
export interface ScimPage<Resource> {
  readonly totalResults: number;
  readonly resources: readonly Resource[];
  /** Where the next page begins; undefined for the last one, and where no cursor was asked for. */
  readonly nextCursor: string | undefined;
}

/** The table that is searched. Its expressions are a repository's own. */
export interface SearchedTable<Row, Resource> {
  readonly from: string;
  readonly id: string;
  readonly orgId: string;
  readonly fields: FilterFields;
  /** The statement that reads what is `listed (id, sort_value, place)`, by the places; `$1` is the organization. */
  readonly show: string;
  readonly read: (row: Row) => Resource;
}

/** Whether a search reads all there is of an organization: it has an order of its own, or a filter without an index. */
export function isCostly({ filter, sort }: ScimSearch, { indexed }: FilterFields): boolean {
  return sort !== undefined || (filter !== undefined && !isLookUp(filter, indexed));
}

/** Whether whatever a filter finds equals a value in one of some attributes, given by their paths. */
export function isLookUp(filter: Filter, paths: ReadonlySet<string>): boolean {
  if (filter.kind === 'and') return filter.operands.some((operand) => isLookUp(operand, paths));
  return filter.kind === 'compare' && filter.operator === 'eq' && paths.has(filter.target.path);
}

/** Bounds the time of each further statement of a transaction; none is compiled, which takes longer than it saves. */
export async function limitStatements(tx: EntityManager, milliseconds: number): Promise<void> {
  await sql(
    tx,
  )`SELECT set_config('statement_timeout', ${String(milliseconds)}, true), set_config('jit', 'off', true)`;
}

/**
 * Searches a table within one organization. A page costs one statement, and another one where it cannot tell by itself how
 * many there are in all. The order is stable: by id, which follows the time of creation, after whatever else is asked for.
 *
 * @throws DomainError invalid_filter; invalid_cursor for a cursor of another search, or of another organization
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
  const within = `${table.orgId} = $1 AND (${matches.text})`;
  const values: unknown[] = [orgId, ...matches.values];
  const bind = (value: unknown) => `$${values.push(value)}`;

  const sort = search.sort && sortExpression(search.sort.target, table.fields);
  const descending = search.sort?.descending ?? false;
  let after = 'true';
  let offset = '';
  if (search.page.kind === 'index') offset = `OFFSET ${bind(search.page.startIndex - 1)}`;
  else if (search.page.cursor !== '') {
    const position = readCursor(search.page.cursor, fingerprintOf(orgId, search, table.fields));
    after = afterPosition(position, { sort, descending, id: table.id, bind });
  }
  const direction = descending ? 'DESC NULLS FIRST' : 'ASC NULLS LAST';
  const orderOf = (value: string, id: string) => (sort ? `${value} ${direction}, ${id}` : id);
  // Which resources are on the page, and only then what they are: nothing is put together for those that OFFSET skips.
  const found =
    search.count === 0
      ? []
      : await composedSql<Row>(
          tx,
          `WITH page AS MATERIALIZED (
             SELECT ${table.id} AS id, ${sort?.expression ?? 'NULL'} AS sort_value FROM ${table.from}
             WHERE ${within} AND ${after} ORDER BY ${orderOf(sort?.expression ?? '', table.id)}
             LIMIT ${bind(search.count + 1)} ${offset}
           ), listed AS (
             SELECT id, sort_value, row_number() OVER (ORDER BY ${orderOf('sort_value', 'id')}) AS place FROM page
           )
           ${table.show}`,
          values,
        );
  const rows = found.slice(0, search.count);
  const last = rows.at(-1);
  const goesOn = found.length > search.count;
  return {
    totalResults:
      (goesOn ? undefined : totalAtEnd(search, rows.length)) ??
      (await countOf(tx, table.from, within, [orgId, ...matches.values])),
    resources: rows.map(table.read),
    nextCursor:
      search.page.kind === 'cursor' && goesOn && last
        ? writeCursor(last, fingerprintOf(orgId, search, table.fields))
        : undefined,
  };
}

/** How many there are in all, as far as the last page tells. */
function totalAtEnd({ page, count }: ScimSearch, found: number): number | undefined {
  if (count === 0) return undefined;
  const before = page.kind === 'index' ? page.startIndex - 1 : 0;
  const isFirst = page.kind === 'index' ? before === 0 : page.cursor === '';
  return isFirst || (found > 0 && page.kind === 'index') ? before + found : undefined;
}

async function countOf(
  tx: EntityManager,
  from: string,
  within: string,
  values: readonly unknown[],
): Promise<number> {
  const [row] = await composedSql<{ n: string }>(
    tx,
    `SELECT count(*) AS n FROM ${from} WHERE ${within}`,
    values,
  );
  return Number(row?.n);
}

interface Order {
  readonly sort: Sort | undefined;
  readonly descending: boolean;
  readonly id: string;
  readonly bind: (value: unknown) => string;
}

/** What comes after a position: whoever is deleted or added in between, nobody else is skipped or comes twice. */
function afterPosition(position: Position, { sort: by, descending, id, bind }: Order): string {
  const later = `${id} > ${bind(position.id)}::uuid`;
  if (by === undefined) return later;
  const { expression: sort, isRequired } = by;
  if (position.sort_value === null) {
    return descending
      ? `(${sort} IS NOT NULL OR (${sort} IS NULL AND ${later}))`
      : `(${sort} IS NULL AND ${later})`;
  }
  const value = `${bind(position.sort_value)}::text COLLATE "C"`;
  if (isRequired) {
    // An index begins at the value: nobody reads what was on the pages before.
    const [beyond, from] = descending ? ['<', '<='] : ['>', '>='];
    return `(${sort} ${from} ${value} AND (${sort} ${beyond} ${value} OR ${later}))`;
  }
  return descending
    ? `(${sort} < ${value} OR (${sort} = ${value} AND ${later}))`
    : `(${sort} > ${value} OR (${sort} = ${value} AND ${later}) OR ${sort} IS NULL)`;
}

/** Which search a cursor is of: of whose resources, of what type, by which filter and in which order. */
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
