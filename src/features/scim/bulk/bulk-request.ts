import { asciiLowerCase } from '#platform/text/single-line.js';
import {
  domainErrorOf,
  findAttribute,
  findSchema,
  GROUP_SCHEMA,
  isObject,
  isStorable,
  isStorableValue,
  notStorable,
  USER_SCHEMA,
} from '../language/scim-language.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The largest number of operations in a bulk request. */
export const MOST_OPERATIONS = 1000;

/** One operation of a bulk request (RFC 7644 §3.7). Malformed fields have empty values. */
export interface BulkOperation {
  readonly method: string;
  readonly bulkId: string | undefined;
  readonly path: string;
  /** The version as the client sent it. {@link versionOf} validates it. */
  readonly version: unknown;
  readonly data: unknown;
}

/** The operations and the error limit of a bulk request (RFC 7644 §3.7). */
export interface BulkRequest {
  readonly operations: readonly BulkOperation[];
  /** The number of errors after which the remaining operations do not run. */
  readonly failOnErrors: number;
}

/**
 * Parses a bulk request. Keys may have any case.
 *
 * @throws DomainError invalid_request, also if no operation can be applied because of characters
 *   that cannot be stored; body_too_large for too many operations (RFC 7644 §3.7.4)
 */
export function readBulkRequest(body: unknown): BulkRequest {
  const fields = fieldsOf(body);
  const operations = fields.get('operations');
  const failOnErrors = fields.get('failonerrors') ?? Number.MAX_SAFE_INTEGER;
  if (!Array.isArray(operations)) {
    throw new DomainError('invalid_request', 'Operations must be a list.');
  }
  if (typeof failOnErrors !== 'number' || !Number.isInteger(failOnErrors) || failOnErrors < 1) {
    throw new DomainError('invalid_request', 'failOnErrors must be a whole number from 1.');
  }
  if (operations.length > MOST_OPERATIONS) {
    throw new DomainError(
      'body_too_large',
      `A bulk request has at most ${MOST_OPERATIONS} operations.`,
    );
  }
  const read = operations.map(readOperation);
  const canBeApplied = read.some(
    (operation, index) => mayEndAccess(operation) || isStorableValue(operations[index]),
  );
  if (read.length > 0 && !canBeApplied) throw domainErrorOf(notStorable());
  return { operations: read, failOnErrors };
}

/**
 * Returns true for an operation that may end access. It is then applied even if a part of it has
 * characters that cannot be stored.
 */
function mayEndAccess({ method, path }: BulkOperation): boolean {
  return path !== '' && ['PUT', 'PATCH', 'DELETE'].includes(method);
}

function readOperation(raw: unknown): BulkOperation {
  const fields = fieldsOf(raw);
  const text = (name: string) => {
    const value = fields.get(name);
    return typeof value === 'string' && isStorable(value) ? value : undefined;
  };
  const bulkId = fields.get('bulkid');
  const method = text('method')?.toUpperCase() ?? '';
  return {
    method,
    bulkId: typeof bulkId === 'number' ? String(bulkId) : text('bulkid'),
    path: text('path') ?? '',
    version: fields.get('version'),
    data: dataOf(method, fields.get('data')),
  };
}

/**
 * Returns the data of an operation without a list around it. The examples of RFC 7644 §3.7.3 have a
 * resource, or PATCH operations, in a list.
 */
function dataOf(method: string, data: unknown): unknown {
  if (!Array.isArray(data)) return data;
  const isPatch = data.every(
    (each) => isObject(each) && Object.keys(each).some((name) => asciiLowerCase(name) === 'op'),
  );
  if (method === 'PATCH' && isPatch) return { Operations: data };
  return data.length === 1 ? (data as unknown[])[0] : data;
}

/**
 * Returns the version that the resource must have before the operation; undefined if any version is
 * accepted.
 *
 * @throws DomainError invalid_value for a version that is not a string. It is not ignored, because
 *   the operation would then run without its condition
 */
export function versionOf({ version }: BulkOperation): string | undefined {
  if (version === undefined || version === null) return undefined;
  if (typeof version === 'string') return version;
  throw new DomainError('invalid_value', 'The version of an operation must be a string.');
}

/**
 * Returns the members of an object by their names in lower case.
 * @throws DomainError invalid_request for two keys that differ only in case
 */
function fieldsOf(raw: unknown): ReadonlyMap<string, unknown> {
  const entries = isObject(raw) ? Object.entries(raw) : [];
  const fields = new Map(entries.map(([name, value]) => [asciiLowerCase(name), value]));
  if (fields.size === entries.length) return fields;
  throw new DomainError('invalid_request', 'A key of the bulk request occurs twice.');
}

/** The prefix of a reference to a resource that another operation creates (RFC 7644 §3.7.2). */
export const REFERENCE = 'bulkId:';

/**
 * Lists the bulkIds to which an operation refers. They can be in its path, in the members of a
 * group, or in the manager of a user. In the path of a PATCH, they can be in brackets after one of
 * these attributes.
 */
export function referencesOf(operation: BulkOperation): string[] {
  const found: string[] = [];
  withReferences(operation, (reference) => {
    found.push(reference.slice(REFERENCE.length));
    return reference;
  });
  return found;
}

/** Replaces references to bulkIds in an operation by the ids of the resources that were created. */
export function resolved(
  operation: BulkOperation,
  ids: ReadonlyMap<string, string>,
): BulkOperation {
  return withReferences(
    operation,
    (reference) => ids.get(reference.slice(REFERENCE.length)) ?? reference,
  );
}

/**
 * Replaces each reference for which no resource was created by `false`. The value `false` refers to
 * nothing, so the write leaves the attributes with these references out.
 */
export function withoutUnresolved(
  operation: BulkOperation,
  ids: ReadonlyMap<string, string>,
): BulkOperation {
  return withReferences(
    operation,
    (reference) => ids.get(reference.slice(REFERENCE.length)) ?? false,
  );
}

type Replace = (reference: string) => string | false;

function withReferences(operation: BulkOperation, replace: Replace): BulkOperation {
  const { path, data } = operation;
  const parts = path.split('/').map((part) => String(inReference(part, replace)));
  return { ...operation, path: parts.join('/'), data: inAttributes(data, replace) };
}

/**
 * Replaces references in the members of a group and the manager of a user, in a resource or in
 * PATCH operations. Other attributes stay unchanged.
 */
function inAttributes(data: unknown, replace: Replace): unknown {
  return mapped(data, (name, value) => {
    if (isReference(name)) return inReference(value, replace);
    if (isSchema(name)) return inAttributes(value, replace);
    if (asciiLowerCase(name) !== 'operations' || !Array.isArray(value)) return value;
    return value.map((each) => inPatchOperation(each, replace));
  });
}

function inPatchOperation(operation: unknown, replace: Replace): unknown {
  const isAimed =
    isObject(operation) &&
    Object.entries(operation).some(
      ([name, path]) =>
        asciiLowerCase(name) === 'path' && typeof path === 'string' && isReference(path),
    );
  return mapped(operation, (name, value) => {
    const part = asciiLowerCase(name);
    if (part === 'path' && typeof value === 'string') return inPath(value, replace);
    if (part !== 'value') return value;
    return isAimed ? inReference(value, replace) : inAttributes(value, replace);
  });
}

/** Matches a JSON string with its quotes, such as `"bulkId:a"`. */
const QUOTED = /"(?:[^"\\]|\\.)*"/g;

/** Replaces references between the brackets of a path, as in `members[value eq "bulkId:a"]`. */
function inPath(path: string, replace: Replace): string {
  const start = path.indexOf('[');
  if (start === -1 || !isReference(path.slice(0, start).trim())) return path;
  const brackets = path.slice(start).replaceAll(QUOTED, (quoted) => {
    const text = textOf(quoted);
    return text?.startsWith(REFERENCE) ? JSON.stringify(replace(text)) : quoted;
  });
  return path.slice(0, start) + brackets;
}

function textOf(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined; // the parser of the path refuses it
  }
}

/**
 * Replaces a reference that is a bare id, the `value` of an object, or an item of a list of these.
 * The list may be in an object with the member `members`, as some clients send it.
 */
function inReference(value: unknown, replace: Replace): unknown {
  if (typeof value === 'string') return value.startsWith(REFERENCE) ? replace(value) : value;
  if (Array.isArray(value)) return value.map((each) => inReference(each, replace));
  return mapped(value, (name, inner) =>
    ['value', 'members'].includes(asciiLowerCase(name)) ? inReference(inner, replace) : inner,
  );
}

/**
 * Replaces each value of an object by the result of `change`. A value that is no object is returned
 * unchanged.
 */
function mapped(raw: unknown, change: (name: string, value: unknown) => unknown): unknown {
  if (!isObject(raw)) return raw;
  return Object.fromEntries(
    Object.entries(raw).map(([name, value]) => [name, change(name, value)] as const),
  );
}

/** The attributes whose values are ids of other resources, so that they can contain a reference. */
const REFERENCES: ReadonlySet<string | undefined> = new Set(['members', 'manager']);
const RESOURCES = [USER_SCHEMA, GROUP_SCHEMA];

function isReference(name: string): boolean {
  return RESOURCES.some((of) => REFERENCES.has(findAttribute(of, name)?.attribute.name));
}

function isSchema(name: string): boolean {
  return RESOURCES.some((of) => findSchema(of, name) !== undefined);
}
