import { ScimError } from '../errors/scim-error.js';
import {
  checkSize,
  distinct,
  hasParts,
  identity,
  invalidValue,
  isEmpty,
  isObject,
  isPrimary,
  readElements,
  readParts,
  readSimple,
  withParts,
  type ComplexValue,
  type Part,
} from '../schema/attribute-value.js';
import { complexIn, elementsIn, isWritable, rootPath, type Draft } from '../schema/draft.js';
import { impliedElement, meets } from '../filter/element-match.js';
import type { Filter } from '../filter/filter.js';
import type { Attribute } from '../schema/attributes/attribute.js';
import type { RefusedPart, Refuse } from '../schema/refused-part.js';
import {
  areStorable,
  changesOf,
  type AttributeChange,
  type PatchOperation,
} from './patch-operations.js';
import { subAttribute, USER_SCHEMA, type AttributeReference } from '../schema/schemas.js';
import { checkColumn, draftOf, type StoredUser } from '../schema/stored-user.js';
import { finished, namesAddress, refusedPart, type WrittenUser } from '../schema/written-user.js';
import { asciiLowerCase } from '../text/ascii.js';

/** The attributes of a user that a PATCH cannot remove. */
const INDISPENSABLE: ReadonlySet<string> = new Set(['userName', 'active']);

/**
 * The largest number of comparisons of elements in a request. Each element is compared once with
 * each condition and each value that an operation has.
 */
const MOST_WORK = 20_000;

/**
 * Applies operations to a user in their order. `current` is not modified. If an operation cannot be
 * applied, the whole PATCH fails. But if the last readable value of `active` is false, the faulty
 * operation is only left out, because access must end.
 *
 * @param taken the error of an earlier attempt to write this PATCH, which failed because another
 *   user has the same `userName`
 * @throws ScimError `mutability` if all operations are on read-only attributes, `noTarget`,
 *   `invalidPath`, `invalidFilter`, `invalidValue`, `tooMany` for too many comparisons of elements
 */
export function patchUser(
  current: StoredUser,
  operations: readonly PatchOperation[],
  taken?: ScimError,
): WrittenUser {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const draft = draftOf(current);
  const applied = appliedTo(draft, operations, refuse, taken);
  const hasActive = applied.some(({ path }) => path.target.path === 'active');
  const endsAccess = hasActive && draft.get('active') === false;
  const named = applied.filter(({ op, path }) => op !== 'remove' && namesAddress(path.target));
  const written = { draft, named: named.map(({ value }) => value), refused };
  return finished(written, current, {
    hasCritical: hasActive,
    endsAccess,
    operations: operations.length,
    isStorable: areStorable(operations),
  });
}

/** Applies to the draft each change that can be applied, and returns the applied changes. */
function appliedTo(
  draft: Draft,
  operations: readonly PatchOperation[],
  refuse: Refuse,
  taken: ScimError | undefined,
): AttributeChange[] {
  const applied: AttributeChange[] = [];
  let work = 0;
  for (const operation of operations) {
    for (const change of changesOf(operation, { ...USER, refuse })) {
      const { target } = change.path;
      if (!isWritable(target)) continue;
      const more = workOf(change, draft);
      try {
        if (target.path === 'userName' && taken) throw taken;
        if (work + more > MOST_WORK) throw tooMuchWork();
        apply(draft, change);
        work += more;
        applied.push(change);
      } catch (error) {
        refuse(refusedPart(target, error));
      }
    }
  }
  return applied;
}

const USER = { resource: USER_SCHEMA, critical: 'active' } as const;

function tooMuchWork(): ScimError {
  return new ScimError(
    'tooMany',
    'The operations compare too many values. Send fewer operations in one request.',
  );
}

/**
 * Counts the comparisons of elements that a change needs. Their number is limited, because a
 * request of 64 KiB may have a thousand operations on a hundred elements each.
 */
function workOf({ path: { target, filter }, value }: AttributeChange, draft: Draft): number {
  const elements = elementsIn(draft, rootPath(target)).length;
  const given = Array.isArray(value) ? value.length : 0;
  return elements * (1 + given + (filter ? sizeOf(filter) : 0));
}

function sizeOf(filter: Filter): number {
  if (filter.kind === 'not') return 1 + sizeOf(filter.operand);
  if (filter.kind !== 'and' && filter.kind !== 'or') return 1;
  return filter.operands.reduce((sum, operand) => sum + sizeOf(operand), 1);
}

function apply(draft: Draft, change: AttributeChange): void {
  const { attribute } = change.path.target;
  if (!attribute.subAttributes) applyToSimple(draft, change);
  else if (!attribute.multiValued) applyToComplex(draft, change);
  else applyToElements(draft, change);
}

function applyToSimple(draft: Draft, { op, path: { target }, value: raw }: AttributeChange): void {
  const value = op === 'remove' ? undefined : readSimple(target.attribute, raw, target.path);
  if (value !== undefined) {
    checkColumn(target.path, value);
    draft.set(target.path, value);
  } else if (INDISPENSABLE.has(target.path)) {
    throw invalidValue(target.path, 'must have a value');
  } else {
    draft.delete(target.path);
  }
}

/**
 * Changes a complex attribute. Sub-attributes without a new value keep their values (RFC 7644
 * §3.5.2.3). An attribute such as `manager` refers to another resource. If it gets a new `value`,
 * its other sub-attributes are removed, because they would describe the earlier resource.
 */
function applyToComplex(draft: Draft, { op, path: { target }, value: raw }: AttributeChange): void {
  const path = rootPath(target);
  const isRemoved = op === 'remove' || isEmpty(raw);
  const isCleared = op === 'replace' && isEmptyObject(raw) && isReference(target);
  if ((isRemoved || isCleared) && !target.sub) {
    draft.delete(path);
    return;
  }
  const parts = isRemoved ? emptied(target) : partsOf(target, raw);
  const isNew = parts.some(([sub]) => sub === subAttribute(target.attribute, 'value'));
  const value = withParts(isNew ? undefined : complexIn(draft, path), parts);
  if (hasParts(value) && (!isNew || 'value' in value)) draft.set(path, value);
  else draft.delete(path);
}

/**
 * Returns true if an attribute refers to another resource, so that it means nothing without its
 * `value`.
 */
function isReference({ attribute }: AttributeReference): boolean {
  return subAttribute(attribute, 'value') !== undefined;
}

/** Returns true if a value is `{}`, or a list with `{}` as its only element. */
function isEmptyObject(raw: unknown): boolean {
  if (Array.isArray(raw)) return raw.length === 1 && isEmptyObject((raw as unknown[])[0]);
  return isObject(raw) && Object.keys(raw).length === 0;
}

function partsOf({ attribute, sub, path }: AttributeReference, raw: unknown): Part[] {
  return sub ? [[sub, readSimple(sub, raw, path)]] : readParts(attribute, raw);
}

function applyToElements(draft: Draft, change: AttributeChange): void {
  const { target } = change.path;
  const path = rootPath(target);
  const elements = changedElements(elementsIn(draft, path), change);
  // The size is checked after each operation, because the next operation reads all elements, and a
  // longer list costs more time.
  checkSize(target.attribute, elements);
  if (elements.length === 0) draft.delete(path);
  else draft.set(path, elements);
}

/** Changes the elements that the filter in brackets chooses, or all elements. */
function changedElements(before: readonly ComplexValue[], change: AttributeChange): ComplexValue[] {
  const { op, value } = change;
  const { filter, target } = change.path;
  if (!filter && !target.sub) return changedList(before, change);
  const isRemoved = op === 'remove' || isEmpty(value);
  const isChosen = (element: ComplexValue) => !filter || meets(element, filter);
  if (isRemoved && !target.sub) return before.filter((element) => !isChosen(element));
  const parts = isRemoved ? emptied(target) : partsOf(target, value);
  // A replaced element keeps none of its earlier sub-attributes (RFC 7644 §3.5.2.3).
  const isWhole = op === 'replace' && !target.sub;
  const changed = new Set<ComplexValue>();
  const changeOf = (element: ComplexValue | undefined) => {
    const next = withParts(element, parts);
    changed.add(next);
    return next;
  };
  const after = before.map((element) =>
    isChosen(element) ? changeOf(isWhole ? undefined : element) : element,
  );
  if (changed.size === 0 && !isRemoved) {
    const made = changeOf(newElement(change));
    // The new value must still meet the filter in the brackets. Otherwise it would not be the
    // element that the client named.
    if (op === 'replace' && filter && !meets(made, filter)) throw noTarget();
    after.push(made);
  }
  return onePrimary(after, changed, target).filter(hasParts);
}

/**
 * Returns the change that clears the sub-attribute of a path; none for a path without a
 * sub-attribute.
 */
function emptied({ sub }: AttributeReference): Part[] {
  return sub ? [[sub, undefined]] : [];
}

/** Changes a list, for a path without brackets: adds, removes or replaces elements. */
function changedList(
  before: readonly ComplexValue[],
  { op, path: { target }, value }: AttributeChange,
): ComplexValue[] {
  const given = readElements(target.attribute, value);
  if (op === 'replace') return given;
  if (op === 'add') return added(before, given, target);
  // Without a value, `remove` removes all elements (RFC 7644 §3.5.2.2). With a list, which Entra
  // sends, it removes the listed elements.
  if (value === undefined || value === null) return [];
  return before.filter(
    (element) => !given.some((each) => includes(element, each, target.attribute)),
  );
}

/**
 * Adds elements to a list. An element that differs from an existing one only in `primary` is not
 * added. It replaces the existing one if it is primary.
 */
function added(
  before: readonly ComplexValue[],
  given: readonly ComplexValue[],
  target: AttributeReference,
): ComplexValue[] {
  const fresh = new Map(given.map((element) => [identity(element), element]));
  const changed = new Set<ComplexValue>();
  const known = before.map((element) => {
    const again = fresh.get(identity(element));
    fresh.delete(identity(element));
    if (!again || !isPrimary(again)) return element;
    changed.add(again);
    return again;
  });
  for (const element of fresh.values()) changed.add(element);
  return onePrimary([...known, ...fresh.values()], changed, target);
}

/**
 * Returns true if an element has every part of a listed element. Texts compare as in a filter, and
 * an absent `primary` means false (RFC 7643 §2.4).
 */
function includes(element: ComplexValue, listed: ComplexValue, of: Attribute): boolean {
  return Object.entries(listed).every(([name, value]) => {
    const own = element[name];
    if (typeof value === 'boolean') return (own ?? false) === value;
    if (typeof own !== 'string') return false;
    return subAttribute(of, name)?.caseExact
      ? own === value
      : asciiLowerCase(own) === asciiLowerCase(value);
  });
}

/**
 * Returns the element to create if the filter in brackets matches none; undefined for a path
 * without brackets. Its sub-attributes follow from the filter. This is needed, because Microsoft
 * Entra replaces parts of elements that do not exist yet, such as `phoneNumbers[type eq
 * "work"].value`.
 * @throws ScimError `noTarget` for a `replace` of a whole element, which needs a match (RFC 7644
 *   §3.5.2.3), and for a filter that does not determine an element
 */
function newElement({ op, path: { filter, target } }: AttributeChange): ComplexValue | undefined {
  if (!filter) return undefined;
  const implied = op === 'add' || target.sub ? impliedElement(filter) : undefined;
  if (!implied) throw noTarget();
  return implied;
}

function noTarget(): ScimError {
  return new ScimError('noTarget', 'No value matches the filter in the path.');
}

/**
 * If a changed element is primary, removes `primary` from all other elements, because only one
 * element may be primary (RFC 7644 §3.5.2).
 */
function onePrimary(
  elements: readonly ComplexValue[],
  changed: ReadonlySet<ComplexValue>,
  { attribute }: AttributeReference,
): ComplexValue[] {
  const claims = distinct([...changed].filter(isPrimary));
  if (claims.length > 1) throw invalidValue(attribute.name, 'can have one primary value only');
  const primary = subAttribute(attribute, 'primary');
  if (claims.length === 0 || !primary) return distinct(elements);
  return distinct(
    elements.map((element) =>
      changed.has(element) || !isPrimary(element)
        ? element
        : withParts(element, [[primary, undefined]]),
    ),
  );
}
