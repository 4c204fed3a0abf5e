import { asciiLowerCase } from '#platform/text/single-line.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  domainErrorOf,
  findAttribute,
  isObject,
  isStorableValue,
  notStorable,
  parseFilter,
  parseProjection,
  type Projection,
  type ResourceSchema,
} from '../language/scim-language.js';
import type { ScimSearch } from './search-table.repository.js';

/** The number of resources on a page if the request states no `count`. */
export const USUAL_COUNT = 100;
/** The largest number of resources on a page. */
export const MOST_RESULTS = 1000;

/**
 * The parameters of a query or a search request as the client sent them (RFC 7644 §3.4.2, §3.4.3;
 * RFC 9865 §2).
 */
export type QueryFields = Readonly<Record<string, unknown>>;

/**
 * Returns the parameters in the body of a search request.
 * @throws DomainError invalid_request for characters that the database cannot store
 */
export function searchFields(body: unknown): QueryFields {
  if (isStorableValue(body)) return body as QueryFields;
  throw domainErrorOf(notStorable());
}

/** The parsed parameters of a query (GET) or of a search request (POST `.search`). */
export interface ScimQuery {
  readonly search: ScimSearch;
  readonly projection: Projection;
  /** The index of the first resource, from 1, as the response repeats it. */
  readonly startIndex: number;
}

/**
 * Parses a query. The names of parameters may have any case.
 *
 * @param others the schemas that are searched together with this one. Their attributes are allowed,
 *   but no resource of this schema has a value for them (RFC 7644 §3.4.2.1).
 * @throws DomainError invalid_request, invalid_filter, invalid_value, invalid_path; invalid_cursor
 *   for a cursor that is no text, and invalid_count for a malformed count in a request with a
 *   cursor (RFC 9865 §2.1)
 */
export function readQuery(
  raw: QueryFields,
  schema: ResourceSchema,
  others: readonly ResourceSchema[] = [],
): ScimQuery {
  const fields = byLowerName(raw);
  const projection = readProjection(raw, schema);
  const startIndex = Math.max(1, integer(fields, 'startindex') ?? 1);
  const filter = text(fields, 'filter');
  const cursor = text(fields, 'cursor', 'invalid_cursor');
  const ofCount = cursor === undefined ? 'invalid_value' : 'invalid_count';
  const wanted = integer(fields, 'count', ofCount) ?? USUAL_COUNT;
  const count = Math.min(MOST_RESULTS, Math.max(0, wanted));
  return {
    projection,
    startIndex,
    search: {
      filter: filter === undefined ? undefined : parseFilter(filter, schema, others),
      sort: readSort(fields, schema, others),
      count,
      page: cursor === undefined ? { kind: 'index', startIndex } : { kind: 'cursor', cursor },
      withAttributes: projection.needsAttributes || projection.needsVersion,
      withRelations: projection.needsGroups || projection.needsVersion,
    },
  };
}

/**
 * Parses the parameters that choose the attributes of a response (RFC 7644 §3.9).
 * @throws DomainError invalid_value
 */
export function readProjection(raw: QueryFields, schema: ResourceSchema): Projection {
  const fields = byLowerName(raw);
  return parseProjection(
    {
      attributes: nameList(fields, 'attributes'),
      excludedAttributes: nameList(fields, 'excludedattributes'),
    },
    schema,
  );
}

type Fields = ReadonlyMap<string, unknown>;

/**
 * Returns the parameters by their names in lower case.
 * @throws DomainError invalid_request for a search whose body is missing or a list
 */
function byLowerName(raw: unknown): Fields {
  if (!isObject(raw)) {
    throw new DomainError('invalid_request', 'The search must be a JSON object.');
  }
  return new Map(Object.entries(raw).map(([name, value]) => [asciiLowerCase(name), value]));
}

function readSort(
  fields: Fields,
  schema: ResourceSchema,
  others: readonly ResourceSchema[],
): ScimSearch['sort'] {
  const by = text(fields, 'sortby');
  if (by === undefined || by === '') return undefined;
  const target = findAttribute(schema, by);
  if (!target) {
    if (others.some((other) => findAttribute(other, by))) return undefined;
    throw new DomainError('invalid_path', 'sortBy names no attribute.');
  }
  return { target, descending: asciiLowerCase(text(fields, 'sortorder') ?? '') === 'descending' };
}

function text(fields: Fields, name: string, code?: ErrorCode): string | undefined {
  const value = fields.get(name);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw unreadable(name, code);
  return value;
}

function integer(fields: Fields, name: string, code?: ErrorCode): number | undefined {
  const value = fields.get(name);
  if (value === undefined || value === null || value === '') return undefined;
  const number = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  if (!Number.isSafeInteger(number)) throw unreadable(name, code);
  return number as number;
}

/**
 * Returns a list of names as one text, separated by commas. The value of the parameter is such a
 * text in the query of a GET, and an array in the body of a search. Returns undefined if the
 * parameter is missing.
 */
function nameList(fields: Fields, name: string): string | undefined {
  const value = fields.get(name);
  if (value === undefined || value === null) return undefined;
  const list: unknown[] = [value].flat();
  if (!list.every((one) => typeof one === 'string')) throw unreadable(name);
  return list.join(',');
}

function unreadable(name: string, code: ErrorCode = 'invalid_value'): DomainError {
  return new DomainError(code, `The parameter ${name} cannot be read.`);
}
