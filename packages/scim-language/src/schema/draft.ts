import { invalidValue, type AttributeValue, type ComplexValue } from './attribute-value.js';
import { referenceTo, type AttributeReference } from './schemas.js';

/**
 * The attributes of a resource during a request that reads or changes them: the values, by the
 * paths of the attributes.
 */
export type Draft = Map<string, AttributeValue>;

/**
 * The largest number of characters of a text that a service indexes, because PostgreSQL indexes at
 * most 2704 bytes.
 */
const MAX_INDEXED = 512;

/**
 * Returns true if a client can write an attribute. A password counts as not writable, because the
 * service drops it.
 */
export function isWritable({ attribute, sub }: AttributeReference): boolean {
  const { mutability } = attribute.mutability === 'readWrite' && sub ? sub : attribute;
  return mutability === 'readWrite' || mutability === 'immutable';
}

/** Returns the path of an attribute without its sub-attribute: `name` for `name.givenName`. */
export function rootPath({ extension, attribute }: AttributeReference): string {
  return referenceTo(extension, attribute).path;
}

export const isComplex = (value: AttributeValue | undefined): value is ComplexValue =>
  typeof value === 'object' && !Array.isArray(value);

export function complexIn(draft: Draft, path: string): ComplexValue | undefined {
  const value = draft.get(path);
  return isComplex(value) ? value : undefined;
}

export function elementsIn(draft: Draft, path: string): readonly ComplexValue[] {
  const value = draft.get(path);
  return Array.isArray(value) ? value : [];
}

/**
 * Returns the text of an attribute that is indexed; undefined if it has no text.
 * @throws ScimError `invalidValue` for a text that is too long for an index
 */
export function textIn(draft: Draft, path: string): string | undefined {
  const value = draft.get(path);
  return typeof value === 'string' ? limited(path, value) : undefined;
}

/**
 * Returns a text if it is short enough for an index.
 * @throws ScimError `invalidValue` for a text that is too long
 */
export function limited(path: string, value: string): string {
  if (value.length <= MAX_INDEXED) return value;
  throw invalidValue(path, `must not be longer than ${MAX_INDEXED} characters`);
}
