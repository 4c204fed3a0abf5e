import { asciiLowerCase } from '#platform/text/single-line.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { invalidValue, isEmpty, isObject } from '../schema/attribute-value.js';
import { parsePath, type PatchPath } from '../query/filter/filter-parser.js';
import {
  containsReferenceTo,
  refersTo,
  type CriticalAttribute,
} from '../schema/critical-attribute.js';
import { referenceTo, type ResourceSchema, type Schema } from '../schema/schemas.js';

/** One operation of a PATCH (RFC 7644 §3.5.2). */
export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string | undefined;
  readonly value: unknown;
}

const MAX_OPERATIONS = 1000;
/** The schema URN of a PATCH message, in lower case. */
const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:patchop';

/**
 * Reads the body of a PATCH. Keys and `op` may have any case, and `schemas` may be absent.
 * @throws DomainError `invalid_request` for a body that is not a PATCH or has a key twice, `invalid_path` for a path
 * that is not a string, `invalid_value` for an `add` without a value, `too_many`
 */
export function readOperations(body: unknown): PatchOperation[] {
  checkSchemas(member(body, 'schemas'));
  const operations = member(body, 'operations');
  if (!Array.isArray(operations) || operations.length === 0) {
    throw new DomainError(
      'invalid_request',
      'Operations must be a list of at least one operation.',
    );
  }
  if (operations.length > MAX_OPERATIONS) {
    throw new DomainError('too_many', `There must be at most ${MAX_OPERATIONS} operations.`);
  }
  return operations.map(readOperation);
}

/** @throws DomainError `invalid_request` where the schemas name another message (RFC 7644 §3.5.2) */
function checkSchemas(schemas: unknown): void {
  if (schemas === undefined || schemas === null) return;
  const named: unknown[] = [schemas].flat();
  if (named.some((urn) => typeof urn === 'string' && asciiLowerCase(urn) === PATCH_OP)) return;
  throw new DomainError('invalid_request', 'The schemas of a PATCH must name the PatchOp message.');
}

function readOperation(raw: unknown): PatchOperation {
  const named = member(raw, 'op');
  const op = typeof named === 'string' ? asciiLowerCase(named) : undefined;
  if (op !== 'add' && op !== 'replace' && op !== 'remove') {
    throw new DomainError('invalid_request', 'op must be "add", "replace" or "remove".');
  }
  const path = member(raw, 'path');
  const isAbsent = path === undefined || path === null || path === '';
  if (!isAbsent && typeof path !== 'string') {
    throw new DomainError('invalid_path', 'path must be a string.');
  }
  const value = member(raw, 'value');
  if (op === 'add' && value === undefined) throw invalidValue('value', 'is required for add');
  return { op, path: isAbsent ? undefined : path, value };
}

function member(of: unknown, name: string): unknown {
  if (!isObject(of)) return undefined;
  const found = Object.entries(of).filter(([key]) => asciiLowerCase(key) === name);
  if (found.length > 1) throw new DomainError('invalid_request', `${name} occurs twice.`);
  return found[0]?.[1];
}

/** The change of one attribute by an operation. */
export interface AttributeChange {
  readonly op: PatchOperation['op'];
  readonly path: Extract<PatchPath, { kind: 'attribute' }>;
  readonly value: unknown;
  /** True when the path of the operation names the attribute; false for an attribute within an object of values. */
  readonly isAimed: boolean;
}

/**
 * Splits an operation into changes of single attributes. Unknown attributes within an object are ignored, and so is a
 * path under the URN of an unknown schema, unless they refer to the critical attribute.
 * @throws DomainError `invalid_value` for an attribute with two values, `invalid_path` for a path to no attribute
 */
export function changesOf(
  operation: PatchOperation,
  resource: ResourceSchema,
  critical: CriticalAttribute,
): AttributeChange[] {
  const { op, path: text, value } = operation;
  if (text === undefined) return once(changesIn(operation, resource, critical, ''));
  const path = parsePath(text, resource);
  if (path.kind === 'schema') {
    return once(
      path.schema === resource.core
        ? changesIn(operation, resource, critical, '')
        : changesUnder(path.schema, operation, resource, critical),
    );
  }
  refuseUnclearReference(path, value, critical);
  if (path.kind === 'attribute') return [{ op, path, value, isAimed: true }];
  if (isForeign(path.name, resource)) return [];
  throw new DomainError('invalid_path', 'The path names no attribute.');
}

/** Tells whether a name lies under the URN of an unknown schema. Clients send their extensions to every service. */
function isForeign(name: string, { core, extensions }: ResourceSchema): boolean {
  const isOurs = ({ id }: Schema) =>
    name.startsWith(asciiLowerCase(id)) && /^[:.]|^$/.test(name.slice(id.length));
  return name.startsWith('urn:') && ![core, ...extensions].some(isOurs);
}

/** Refuses an object with two values for one attribute, because the intended one is unknown. */
function once(changes: AttributeChange[]): AttributeChange[] {
  const paths = new Set<string>();
  for (const { op, path } of changes) {
    if (op === 'remove' || path.filter) continue;
    if (paths.has(path.target.path)) throw invalidValue(path.target.path, 'occurs twice');
    paths.add(path.target.path);
  }
  return changes;
}

/** The changes of an operation on a whole schema. Without a value it removes the extension. */
function changesUnder(
  schema: Schema,
  operation: PatchOperation,
  resource: ResourceSchema,
  critical: CriticalAttribute,
): AttributeChange[] {
  if (operation.op !== 'remove' && !isEmpty(operation.value)) {
    return changesIn(operation, resource, critical, `${schema.id}:`);
  }
  if (operation.op === 'add' || schema === resource.core) return [];
  return schema.attributes.map((attribute) => {
    const target = referenceTo(schema.id, attribute);
    const path = { kind: 'attribute', target, filter: undefined } as const;
    return { op: 'remove', path, value: undefined, isAimed: false };
  });
}

/** The changes of an object of attributes: the `value` of an operation without a path, or the values under a URN. */
function changesIn(
  { op, value }: PatchOperation,
  resource: ResourceSchema,
  critical: CriticalAttribute,
  prefix: string,
): AttributeChange[] {
  if (op === 'remove') throw new DomainError('no_target', 'remove needs the path of an attribute.');
  if (!isObject(value)) {
    throw new DomainError(
      'invalid_value',
      'Where path names no attribute, value must be an object.',
    );
  }
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = pathOfKey(`${prefix}${key}`, resource);
    if (path.kind === 'schema') {
      return changesUnder(path.schema, { op, path: undefined, value: inner }, resource, critical);
    }
    refuseUnclearReference(path, inner, critical);
    return path.kind === 'attribute' ? [{ op, path, value: inner, isAimed: false }] : [];
  });
}

/** Parses a key as a path: `name.givenName`, or a name with its URN. */
function pathOfKey(key: string, resource: ResourceSchema): PatchPath {
  try {
    return parsePath(key, resource);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return { kind: 'unknown', name: key };
  }
}

/** @throws DomainError for a reference to the critical attribute that is not understood */
function refuseUnclearReference(
  path: Exclude<PatchPath, { kind: 'schema' }>,
  value: unknown,
  critical: CriticalAttribute,
): void {
  const name = path.kind === 'attribute' ? path.target.path : path.name;
  if (path.kind === 'attribute' && name === critical) return;
  if (refersTo(critical, name)) {
    throw new DomainError(
      'invalid_path',
      `The path names ${critical} in a way that is not understood.`,
    );
  }
  if (containsReferenceTo(critical, value)) {
    throw invalidValue(critical, 'is referenced in the value in a way that is not understood');
  }
}
