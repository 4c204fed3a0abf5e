import { asciiLowerCase } from '../text/ascii.js';
import { ScimError } from '../errors/scim-error.js';
import { invalidValue, isEmpty, isObject } from '../schema/attribute-value.js';
import { parsePath, type PatchPath } from '../filter/filter-parser.js';
import { isForeign, refersTo, type CriticalAttribute } from '../schema/critical-attribute.js';
import { isWritable } from '../schema/draft.js';
import { ignoredBareNames } from '../schema/bare-names.js';
import { isStorableValue } from '../schema/literal.js';
import { notStorable, resemblanceOf, unclearValue, type Refuse } from '../schema/refused-part.js';
import { referenceTo, type ResourceSchema, type Schema } from '../schema/schemas.js';

/** One operation of a PATCH (RFC 7644 §3.5.2). */
export interface PatchOperation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string | undefined;
  readonly value: unknown;
  /**
   * The error of an operation that is malformed, or that exceeds the largest number of operations;
   * undefined for any other operation.
   */
  readonly fault?: ScimError;
}

const MAX_OPERATIONS = 1000;
/** The schema URN of the body of a PATCH, in lower case. */
const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:patchop';

/**
 * Parses the body of a PATCH. Keys and `op` may have any case, and `schemas` may be absent. A
 * malformed operation is returned with its fault.
 * @throws ScimError `invalidSyntax` for a body that is not a PATCH or has a key twice
 */
export function readOperations(body: unknown): PatchOperation[] {
  checkSchemas(member(body, 'schemas'));
  const operations = member(body, 'operations');
  if (!Array.isArray(operations) || operations.length === 0) {
    throw new ScimError('invalidSyntax', 'Operations must be a list of at least one operation.');
  }
  return operations.map((raw, index) => {
    const operation = readOperation(raw);
    return index < MAX_OPERATIONS || endsAccess(operation)
      ? operation
      : { ...operation, fault: tooMany() };
  });
}

/**
 * Returns true if the path of an operation shows that it sets `active` or removes members. Such an
 * operation is applied even if the PATCH has too many operations, because it may end access.
 */
function endsAccess({ op, path = '' }: PatchOperation): boolean {
  const name = asciiLowerCase(path);
  return name === 'active' || (op === 'remove' && name.startsWith('members'));
}

function tooMany(): ScimError {
  return new ScimError('tooMany', `There must be at most ${MAX_OPERATIONS} operations.`);
}

/**
 * Checks the schemas of a body.
 * @throws ScimError `invalidSyntax` if there are schemas, but none of them is that of a PATCH (RFC
 *   7644 §3.5.2)
 */
function checkSchemas(schemas: unknown): void {
  if (schemas === undefined || schemas === null) return;
  const named: unknown[] = [schemas].flat();
  if (named.some((urn) => typeof urn === 'string' && asciiLowerCase(urn) === PATCH_OP)) return;
  throw new ScimError('invalidSyntax', 'The schemas of a PATCH must name the PatchOp message.');
}

function readOperation(raw: unknown): PatchOperation {
  try {
    return wellFormed(raw);
  } catch (error) {
    if (!(error instanceof ScimError)) throw error;
    const path = isObject(raw) && typeof raw['path'] === 'string' ? raw['path'] : undefined;
    return { op: 'replace', path, value: undefined, fault: error };
  }
}

/**
 * Parses one operation.
 *
 * @throws ScimError `invalidSyntax` for an unknown `op`, `invalidPath` for a path that is not a
 *   string, `invalidValue` for an `add` without a value
 */
function wellFormed(raw: unknown): PatchOperation {
  const named = member(raw, 'op');
  const op = typeof named === 'string' ? asciiLowerCase(named) : undefined;
  if (op !== 'add' && op !== 'replace' && op !== 'remove') {
    throw new ScimError('invalidSyntax', 'op must be "add", "replace" or "remove".');
  }
  const path = member(raw, 'path');
  const isAbsent = path === undefined || path === null || path === '';
  if (!isAbsent && typeof path !== 'string') {
    throw new ScimError('invalidPath', 'path must be a string.');
  }
  const value = member(raw, 'value');
  if (op === 'add' && value === undefined) throw invalidValue('value', 'is required for add');
  return { op, path: isAbsent ? undefined : path, value };
}

/** Returns true if no operation has characters that cannot be stored. */
export function areStorable(operations: readonly PatchOperation[]): boolean {
  return operations.every(({ path, value }) => isStorableValue([path, value]));
}

function member(of: unknown, name: string): unknown {
  if (!isObject(of)) return undefined;
  const found = Object.entries(of).filter(([key]) => asciiLowerCase(key) === name);
  if (found.length > 1) throw new ScimError('invalidSyntax', `${name} occurs twice.`);
  return found[0]?.[1];
}

/** The change of one attribute by an operation. */
export interface AttributeChange {
  /** The name or the path of the attribute, as the request has it. */
  readonly name: string;
  readonly op: PatchOperation['op'];
  readonly path: Extract<PatchPath, { kind: 'attribute' }>;
  readonly value: unknown;
}

/**
 * How to read operations: the resource type, its critical attribute, and the function that receives
 * the parts that are not understood. An unclear reference to the critical attribute is never
 * ignored, because it may be meant to end access.
 */
export interface Reading {
  readonly resource: ResourceSchema;
  readonly critical: CriticalAttribute;
  readonly refuse: Refuse;
}

/**
 * Splits an operation into changes of single attributes. Unknown and read-only attributes within an
 * object are ignored, unless they refer to the critical attribute.
 */
export function changesOf(operation: PatchOperation, reading: Reading): AttributeChange[] {
  const { path, fault } = operation;
  const name = path ?? 'value';
  return attempt(name, reading, () => {
    if (fault) throw fault;
    if (path === undefined) return changesIn(operation, reading, '');
    return changesAt(path, operation, reading);
  });
}

/**
 * Calls a function that reads a part of an operation. If it throws, the part is refused, and the
 * result is empty.
 */
function attempt(
  name: string,
  { refuse }: Reading,
  read: () => AttributeChange[],
): AttributeChange[] {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ScimError)) throw error;
    refuse({ kind: 'fault', name, error });
    return [];
  }
}

/**
 * Returns the changes of an operation with a path. The path names an attribute or a whole schema.
 */
function changesAt(name: string, operation: PatchOperation, reading: Reading): AttributeChange[] {
  const { op, value } = operation;
  const { resource, refuse } = reading;
  const path = parsePath(name, resource);
  if (path.kind === 'schema') {
    return path.schema === resource.core
      ? changesIn(operation, reading, '')
      : once(changesUnder(path.schema, operation, reading), reading);
  }
  if (isUnclear(path, value, reading, true)) return [];
  if (path.kind === 'attribute') {
    const { attribute } = path.target;
    const isIgnored = attribute.mutability === 'writeOnly';
    if (isWritable(path.target) || isIgnored) return [{ name, op, path, value }];
    const error = new ScimError('mutability', `${path.target.path} is read-only.`);
    refuse({ kind: 'unknown', name, error });
    return [];
  }
  const error = new ScimError('invalidPath', 'The path names no attribute.');
  refuse({ kind: isForeign(path.name, resource) ? 'foreign' : 'unknown', name, error });
  return [];
}

/**
 * Refuses an attribute that an object has twice, because it is unknown which value is meant.
 * Neither value is applied. Some names of extension attributes without their URN are ignored
 * ({@link ignoredBareNames}).
 */
function once(given: AttributeChange[], reading: Reading): AttributeChange[] {
  const members = given.map((change) => ({ ...change, target: change.path.target }));
  const ignored = ignoredBareNames(members);
  for (const { name, value } of ignored) ignore(name, value, reading);
  const changes = members.filter((change) => !ignored.has(change));
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const { op, path, target } of changes) {
    const name = target.path;
    if (op === 'remove' || path.filter) continue;
    if (seen.has(name) && !twice.has(name)) {
      twice.add(name);
      reading.refuse({ kind: 'fault', name, error: invalidValue(name, 'occurs twice') });
    }
    seen.add(name);
  }
  return twice.size === 0 ? changes : changes.filter(({ target }) => !twice.has(target.path));
}

/**
 * Returns the changes of an operation whose path is a whole schema. A `remove`, and a `replace`
 * without a value, removes the extension.
 */
function changesUnder(
  schema: Schema,
  operation: PatchOperation,
  reading: Reading,
): AttributeChange[] {
  if (operation.op !== 'remove' && !isEmpty(operation.value)) {
    return attributesIn(operation, reading, `${schema.id}:`);
  }
  if (operation.op === 'add' || schema === reading.resource.core) return [];
  return schema.attributes.map((attribute) => {
    const target = referenceTo(schema.id, attribute);
    const path = { kind: 'attribute', target, filter: undefined } as const;
    return { name: target.path, op: 'remove', path, value: undefined };
  });
}

/**
 * Returns the changes that an object of attributes asks for. An attribute that occurs twice is
 * refused.
 */
function changesIn(operation: PatchOperation, reading: Reading, prefix: string): AttributeChange[] {
  return once(attributesIn(operation, reading, prefix), reading);
}

/**
 * Returns the changes that an object of attributes asks for. The object is the `value` of an
 * operation without a path, or the object under the URN of a schema. `prefix` is put before each
 * key: the URN with a colon, or nothing.
 * @throws ScimError `noTarget` for a `remove`, `invalidValue` for a value that is no object
 */
function attributesIn(
  { op, value }: PatchOperation,
  reading: Reading,
  prefix: string,
): AttributeChange[] {
  if (op === 'remove') throw new ScimError('noTarget', 'remove needs the path of an attribute.');
  if (!isObject(value)) {
    throw new ScimError('invalidValue', 'Where path names no attribute, value must be an object.');
  }
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = pathOfKey(`${prefix}${key}`, reading.resource);
    if (path.kind === 'schema') {
      const within = { op, path: undefined, value: inner } as const;
      return attempt(key, reading, () => changesUnder(path.schema, within, reading));
    }
    if (isUnclear(path, inner, reading, false)) return [];
    if (path.kind === 'attribute' && isWritable(path.target)) {
      return [{ name: `${prefix}${key}`, op, path, value: inner }];
    }
    ignore(`${prefix}${key}`, inner, reading);
    return [];
  });
}

/**
 * Drops a part of a value without an error, except if it has characters that cannot be stored: then
 * the part is refused.
 */
function ignore(name: string, value: unknown, { refuse }: Reading): void {
  if (!isStorableValue([name, value])) refuse({ kind: 'fault', name, error: notStorable() });
}

/**
 * Parses a key as a path: `name.givenName`, or a name with its URN. A key that is no path counts as
 * an unknown attribute.
 */
function pathOfKey(key: string, resource: ResourceSchema): PatchPath {
  try {
    return parsePath(key, resource);
  } catch (error) {
    if (!(error instanceof ScimError)) throw error;
    return { kind: 'unknown', name: key };
  }
}

/**
 * Returns true for an unclear reference to the critical attribute (`active` or `members`), and for
 * a name that may mean it. The function then refuses the part, because it may be meant to end
 * access.
 * @param isAimed true for the path of an operation, false for a key of its value
 */
function isUnclear(
  path: Exclude<PatchPath, { kind: 'schema' }>,
  value: unknown,
  { resource, critical, refuse }: Reading,
  isAimed: boolean,
): boolean {
  const isKnown = path.kind === 'attribute';
  const name = isKnown ? path.target.path : path.name;
  if (isKnown && name === critical) return false;
  const kind = resemblanceOf(critical, { name, value, isKnown }, resource);
  if (kind === undefined) return false;
  const isOfName = refersTo(critical, name) || (isAimed && kind === 'lookalike');
  const error = isOfName
    ? new ScimError(
        'invalidPath',
        `The path may mean ${critical}, and is not understood. Use the path "${critical}".`,
      )
    : unclearValue(critical);
  refuse({ kind, name, error });
  return true;
}
