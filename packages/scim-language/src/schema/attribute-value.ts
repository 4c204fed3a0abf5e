import { ScimError } from '../errors/scim-error.js';
import type { Attribute } from './attributes/attribute.js';
import { booleanOf, isStorable } from './literal.js';
import { RESOURCE_SIZE } from './resource-size.js';
import { subAttribute } from './schemas.js';

/** The value of an attribute that has no sub-attributes. */
export type SimpleValue = string | boolean;

/**
 * A complex value: its sub-attributes by their names in canonical case, none of them empty. The
 * object has no prototype.
 */
export interface ComplexValue {
  [sub: string]: SimpleValue;
}

/** The value of an attribute in canonical form. */
export type AttributeValue = SimpleValue | ComplexValue | ComplexValue[];

/**
 * The largest number of elements of a multi-valued attribute. `members` has no such limit, because
 * a service stores each member as a row.
 */
const MAX_ELEMENTS = 100;
/** The largest length of a text, in UTF-16 code units. */
const MAX_TEXT = 16_384;
/**
 * The largest number of characters in an attribute with several elements. It is the largest number
 * that a request body can contain.
 */
const MAX_LIST = RESOURCE_SIZE;

/**
 * Returns true if a value means "no value" (RFC 7643 §2.5). Some clients write the empty string
 * instead of null.
 */
export function isEmpty(raw: unknown): boolean {
  return (
    raw === undefined || raw === null || raw === '' || (Array.isArray(raw) && raw.length === 0)
  );
}

/** Returns true for a JSON object. An array is not one. */
export function isObject(raw: unknown): raw is Readonly<Record<string, unknown>> {
  return typeof raw === 'object' && raw !== null && !Array.isArray(raw);
}

/** Makes the error for a value that does not fit its attribute (RFC 7644 §3.12). */
export function invalidValue(path: string, problem: string): ScimError {
  return new ScimError('invalidValue', `${path} ${problem}.`);
}

/** The error for a text or a list over its limit. */
export class TooLarge extends ScimError {
  constructor(path: string, problem: string) {
    super('invalidValue', `${path} ${problem}.`);
  }
}

/**
 * Makes the error for a value that cannot be read. The readers return this function in place of the
 * error, because an error records the stack, which is slow for each of thousands of elements.
 */
export type ValueFault = () => ScimError;

/** Returns true if a reader returned a fault, and not a value. */
export function isFault(read: unknown): read is ValueFault {
  return typeof read === 'function';
}

const faultAt =
  (path: string, problem: string): ValueFault =>
  () =>
    invalidValue(path, problem);

/**
 * Reads a value of an attribute without sub-attributes. Some clients send `"True"` for a boolean,
 * or a number for a text. Both are converted; nothing else is.
 * @returns undefined for an empty value
 * @throws ScimError `invalidValue` for a value of another type, or one that is too long
 */
export function readSimple(of: Attribute, raw: unknown, path = of.name): SimpleValue | undefined {
  const value = simpleOrFault(of, raw, path);
  if (isFault(value)) throw value();
  return value;
}

function simpleOrFault(
  of: Attribute,
  raw: unknown,
  path: string,
): SimpleValue | undefined | ValueFault {
  if (isEmpty(raw)) return undefined;
  if (of.type === 'boolean') return booleanOf(raw) ?? faultAt(path, 'must be true or false');
  const text = of.type === 'string' ? (textOfNumber(raw) ?? raw) : raw;
  if (typeof text !== 'string') return faultAt(path, 'must be a string');
  if (text.length > MAX_TEXT) {
    return () => new TooLarge(path, `must not be longer than ${MAX_TEXT} characters`);
  }
  if (!isStorable(text)) return faultAt(path, 'contains a character that cannot be stored');
  if (of.type === 'binary' && !isBase64(text)) return faultAt(path, 'must be base64');
  return text;
}

/**
 * Converts a number to a text, for an attribute that must be a text. Returns undefined for a value
 * that is no number, and for a number that JSON may have rounded.
 */
function textOfNumber(raw: unknown): string | undefined {
  if (typeof raw !== 'number' || Math.abs(raw) > Number.MAX_SAFE_INTEGER) return undefined;
  return String(raw);
}

/**
 * Returns true if a text is base64 (RFC 7643 §2.3.6). The padding is optional; no other character
 * is allowed.
 */
function isBase64(text: string): boolean {
  const [, digits = '', padding = ''] = /^([A-Za-z0-9+/]+)(={0,2})$/.exec(text) ?? [];
  if (digits === '' || digits.length % 4 === 1) return false;
  return padding === '' || (digits.length + padding.length) % 4 === 0;
}

/** A sub-attribute with the value from the client; undefined for an empty value. */
export type Part = readonly [sub: Attribute, value: SimpleValue | undefined];

/**
 * Reads the sub-attributes of one complex value. A string means its `value`, and a list of one
 * element means that element. Read-only and unknown sub-attributes are left out.
 * @throws ScimError `invalidValue` for several elements, and for a value that does not fit
 */
export function readParts(of: Attribute, raw: unknown): Part[] {
  const parts = partsOrFault(of, raw);
  if (isFault(parts)) throw parts();
  return parts;
}

/** Does the same as {@link readParts}, but returns a fault where that function throws an error. */
export function partsOrFault(of: Attribute, raw: unknown): Part[] | ValueFault {
  if (isEmpty(raw)) return [];
  if (Array.isArray(raw)) {
    if (raw.length > 1 || Array.isArray(raw[0])) {
      return faultAt(of.name, 'must have one value only');
    }
    return partsOrFault(of, raw[0]);
  }
  if (typeof raw === 'string' && subAttribute(of, 'value')) return partsOrFault(of, { value: raw });
  if (!isObject(raw)) return faultAt(of.name, 'must be an object');
  const parts = new Map<Attribute, SimpleValue | undefined>();
  for (const [key, part] of Object.entries(raw)) {
    const sub = subAttribute(of, key);
    if (!sub || sub.mutability === 'readOnly') continue;
    const path = `${of.name}.${sub.name}`;
    if (parts.has(sub)) return faultAt(path, 'occurs twice');
    const value = simpleOrFault(sub, part, path);
    if (isFault(value)) return value;
    parts.set(sub, value);
  }
  return [...parts];
}

/**
 * Reads one complex value; undefined for a value without sub-attributes.
 * @throws ScimError `invalidValue` in the cases of {@link readParts}
 */
export function readComplex(of: Attribute, raw: unknown): ComplexValue | undefined {
  const value = withParts(undefined, readParts(of, raw));
  return hasParts(value) ? value : undefined;
}

/**
 * Copies a complex value and changes some sub-attributes. A sub-attribute whose new value is
 * undefined is removed.
 */
export function withParts(value: ComplexValue | undefined, parts: readonly Part[]): ComplexValue {
  const changed = Object.assign(Object.create(null) as ComplexValue, value);
  for (const [{ name }, part] of parts) {
    if (part === undefined) delete changed[name];
    else changed[name] = part;
  }
  return changed;
}

/**
 * Reads the elements of a multi-valued attribute without duplicates. A single element may come
 * without a list around it. Photos that are too long are left out.
 * @throws ScimError `invalidValue`, also for two primary elements (RFC 7643 §2.4)
 */
export function readElements(of: Attribute, raw: unknown): ComplexValue[] {
  if (isEmpty(raw)) return [];
  const given: readonly unknown[] = Array.isArray(raw) ? raw : [raw];
  const elements = of.name === 'photos' ? shortOnes(given) : given;
  checkSize(of, elements);
  return readEach(of, elements);
}

/**
 * Leaves out photos that exceed the limit of a text, because a photo that is too large must not
 * prevent the write of its user.
 */
function shortOnes(photos: readonly unknown[]): readonly unknown[] {
  return photos.filter((photo) =>
    isObject(photo) ? Object.values(photo).every(isShort) : isShort(photo),
  );
}

const isShort = (part: unknown): boolean => lengthOf(part) <= MAX_TEXT;

function readEach(of: Attribute, given: readonly unknown[]): ComplexValue[] {
  const elements = given
    .map((each) => {
      if (Array.isArray(each)) throw invalidValue(of.name, 'must be one list of values');
      return readComplex(of, each);
    })
    .filter((each) => each !== undefined);
  if (elements.filter(isPrimary).length > 1) {
    throw invalidValue(of.name, 'can have one primary value only');
  }
  return distinct(elements);
}

/** Reads a value by the type of its attribute; undefined for an empty value. */
export function readValue(of: Attribute, raw: unknown): AttributeValue | undefined {
  if (!of.subAttributes) return readSimple(of, raw);
  if (!of.multiValued) return readComplex(of, raw);
  const elements = readElements(of, raw);
  return elements.length === 0 ? undefined : elements;
}

/**
 * Copies the stored value of an attribute, without sub-attributes that the schema does not have or
 * that are read-only; undefined if nothing is left.
 */
export function storedValue(of: Attribute, stored: unknown): AttributeValue | undefined {
  if (!of.subAttributes) return isSimple(stored) ? stored : undefined;
  if (!of.multiValued) return storedComplex(of, stored);
  const elements = (Array.isArray(stored) ? stored : [])
    .map((each: unknown) => storedComplex(of, each))
    .filter((each) => each !== undefined);
  return elements.length === 0 ? undefined : elements;
}

function storedComplex(of: Attribute, stored: unknown): ComplexValue | undefined {
  if (!isObject(stored)) return undefined;
  const writable = (of.subAttributes ?? []).filter(({ mutability }) => mutability !== 'readOnly');
  const parts = writable.map((sub): Part => {
    const part = Object.hasOwn(stored, sub.name) ? stored[sub.name] : undefined;
    return [sub, isSimple(part) ? part : undefined];
  });
  const value = withParts(undefined, parts);
  return hasParts(value) ? value : undefined;
}

const isSimple = (value: unknown): value is SimpleValue =>
  typeof value === 'string' || typeof value === 'boolean';

/**
 * Checks the number and the total length of the elements of an attribute.
 *
 * @throws ScimError `invalidValue` for too many elements, or too much text in them
 */
export function checkSize(of: Attribute, elements: readonly unknown[]): void {
  if (elements.length > MAX_ELEMENTS) {
    throw new TooLarge(of.name, `must not have more than ${MAX_ELEMENTS} values`);
  }
  let length = 0;
  for (const each of elements) {
    if (isObject(each)) for (const part of Object.values(each)) length += lengthOf(part);
  }
  if (length > MAX_LIST) {
    throw new TooLarge(of.name, `must not have more than ${MAX_LIST} characters in all its values`);
  }
}

const lengthOf = (part: unknown): number => (typeof part === 'string' ? part.length : 0);

/**
 * Drops elements that have only the labels `type` and `primary`, which mean nothing without a
 * value.
 */
export function withoutLabels(elements: readonly ComplexValue[]): ComplexValue[] {
  return elements.filter((each) =>
    Object.keys(each).some((name) => name !== 'type' && name !== 'primary'),
  );
}

/** Removes duplicates. Of two equal elements, the primary one is kept. */
export function distinct(elements: readonly ComplexValue[]): ComplexValue[] {
  const seen = new Map<string, ComplexValue>();
  for (const element of elements) {
    const key = identity(element);
    if (!seen.has(key) || isPrimary(element)) seen.set(key, element);
  }
  return [...seen.values()];
}

/**
 * Returns a text that is the same for elements that differ only in `primary`. Duplicates are found
 * by this text. It is cached, because elements are never modified.
 */
export function identity(element: ComplexValue): string {
  let known = IDENTITIES.get(element);
  if (known === undefined) IDENTITIES.set(element, (known = writtenIdentity(element)));
  return known;
}

const IDENTITIES = new WeakMap<ComplexValue, string>();

function writtenIdentity(element: ComplexValue): string {
  const names = Object.keys(element).filter((name) => name !== 'primary');
  const texts = names.toSorted().map((name) => {
    const value = element[name];
    // The length before each text shows where the text ends, so that no value can imitate the end
    // of another.
    return `${name} ${typeof value === 'string' ? `${value.length} ${value}` : String(value)}`;
  });
  return texts.join('\n');
}

export const isPrimary = (element: ComplexValue): boolean => element['primary'] === true;

export const hasParts = (value: ComplexValue): boolean => Object.keys(value).length > 0;
