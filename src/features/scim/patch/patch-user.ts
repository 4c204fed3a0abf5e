import { DomainError } from '#platform/errors/domain-error.js';
import {
  checkSize,
  distinct,
  hasParts,
  identity,
  invalidValue,
  isEmpty,
  isPrimary,
  readElements,
  readParts,
  readSimple,
  withParts,
  type ComplexValue,
  type Part,
} from '../schema/attribute-value.js';
import { complexIn, elementsIn, isWritable, rootPath, type Draft } from '../schema/draft.js';
import { impliedElement, meets } from '../query/filter/element-match.js';
import type { Filter } from '../query/filter/filter.js';
import { changesOf, type AttributeChange, type PatchOperation } from './patch-operations.js';
import { subAttribute, USER_SCHEMA, type AttributeReference } from '../schema/schemas.js';
import {
  draftOf,
  userOf,
  type StoredUser,
  type UserAttributes,
} from '../schema/user-attributes.js';

/** Must have a value: a user without one of them is not what anybody meant. */
const INDISPENSABLE: ReadonlySet<string> = new Set(['userName', 'active']);

/** The most elements that the operations of a request look at, one for each condition. */
const MOST_WORK = 20_000;

/**
 * The user after the operations, in their order; `current` stays as it is, and so does everything when one of them
 * fails.
 * @throws DomainError `mutability` for an operation aimed at what is read-only, `no_target`, `invalid_path`,
 * `invalid_filter`, `invalid_value`, `too_many` for more than the size of the request allows for
 */
export function patchUser(
  current: StoredUser,
  operations: readonly PatchOperation[],
): UserAttributes {
  const draft = draftOf(current);
  let work = 0;
  for (const operation of operations) {
    for (const change of changesOf(operation, USER_SCHEMA, 'active')) {
      if (!isAllowed(change)) continue;
      work += workOf(change, draft);
      if (work > MOST_WORK) {
        throw new DomainError('too_many', 'The operations go through too many values.');
      }
      apply(draft, change);
    }
  }
  return userOf(draft);
}

/** How often an element is looked at: a request of 64 KiB may have a thousand operations on a hundred elements each. */
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

/** Whether a change is to be made. What is read-only is passed over within an object, and a password always. */
export function isAllowed({ path: { target }, isAimed }: AttributeChange): boolean {
  if (isWritable(target)) return true;
  if (isAimed && target.attribute.mutability !== 'writeOnly') {
    throw new DomainError('mutability', `${target.path} is read-only.`);
  }
  return false;
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
    draft.set(target.path, value);
  } else if (INDISPENSABLE.has(target.path)) {
    throw invalidValue(target.path, 'must have a value');
  } else {
    draft.delete(target.path);
  }
}

/**
 * Sub-attributes that are not named stay (RFC 7644 §3.5.2.3), save those of a reference: they spoke of the former one.
 */
function applyToComplex(draft: Draft, { op, path: { target }, value: raw }: AttributeChange): void {
  const path = rootPath(target);
  const isRemoved = op === 'remove' || isEmpty(raw);
  if (isRemoved && !target.sub) {
    draft.delete(path);
    return;
  }
  const parts = isRemoved ? emptied(target) : partsOf(target, raw);
  const isReference = parts.some(([sub]) => sub === subAttribute(target.attribute, 'value'));
  const value = withParts(isReference ? undefined : complexIn(draft, path), parts);
  if (hasParts(value) && (!isReference || 'value' in value)) draft.set(path, value);
  else draft.delete(path);
}

function partsOf({ attribute, sub, path }: AttributeReference, raw: unknown): Part[] {
  return sub ? [[sub, readSimple(sub, raw, path)]] : readParts(attribute, raw);
}

function applyToElements(draft: Draft, change: AttributeChange): void {
  const { target } = change.path;
  const path = rootPath(target);
  const elements = changedElements(elementsIn(draft, path), change);
  checkSize(target.attribute, elements); // after each operation: the next one looks at all of them
  if (elements.length === 0) draft.delete(path);
  else draft.set(path, elements);
}

/** What becomes of the elements, of which brackets choose some. */
function changedElements(before: readonly ComplexValue[], change: AttributeChange): ComplexValue[] {
  const { op, value } = change;
  const { filter, target } = change.path;
  if (!filter && !target.sub) return changedList(before, change);
  const isRemoved = op === 'remove' || isEmpty(value);
  const isChosen = (element: ComplexValue) => !filter || meets(element, filter);
  if (isRemoved && !target.sub) return before.filter((element) => !isChosen(element));
  const parts = isRemoved ? emptied(target) : partsOf(target, value);
  // What is replaced as a whole keeps nothing of what it was (RFC 7644 §3.5.2.3).
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
    // A value that no longer meets the filter is not what the brackets chose.
    if (op === 'replace' && filter && !meets(made, filter)) throw noTarget();
    after.push(made);
  }
  return onePrimary(after, changed, target).filter(hasParts);
}

/** The sub-attribute without a value. */
function emptied({ sub }: AttributeReference): Part[] {
  return sub ? [[sub, undefined]] : [];
}

/** An attribute without brackets: elements are added to it, taken from it, or all replaced. */
function changedList(
  before: readonly ComplexValue[],
  { op, path: { target }, value }: AttributeChange,
): ComplexValue[] {
  const given = readElements(target.attribute, value);
  if (op === 'replace') return given;
  if (op === 'add') return added(before, given, target);
  // No value: all of them (RFC 7644 §3.5.2.2). A list of values, as Entra sends it, takes away these.
  if (value === undefined || value === null) return [];
  return before.filter((element) => !given.some((each) => includes(element, each)));
}

/** An element that is there already but for being primary is not there twice. */
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

function includes(element: ComplexValue, part: ComplexValue): boolean {
  return Object.entries(part).every(([name, value]) => element[name] === value);
}

/**
 * The element that begins where the brackets match none: what they say it is. Microsoft Entra replaces a part of a value
 * that is not there yet, such as `phoneNumbers[type eq "work"].value`. A `replace` of the whole value needs a match
 * (RFC 7644 §3.5.2.3); without brackets it adds, as to any attribute that is not there.
 */
function newElement({ op, path: { filter, target } }: AttributeChange): ComplexValue | undefined {
  if (!filter) return undefined;
  const implied = op === 'add' || target.sub ? impliedElement(filter) : undefined;
  if (!implied) throw noTarget();
  return implied;
}

function noTarget(): DomainError {
  return new DomainError('no_target', 'No value matches the filter in the path.');
}

/** A new primary value ends that of the others (RFC 7644 §3.5.2). */
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
