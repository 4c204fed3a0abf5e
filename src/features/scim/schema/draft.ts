import { invalidValue, type AttributeValue, type ComplexValue } from './attribute-value.js';
import { referenceTo, type AttributeReference } from './schemas.js';

/**
 * Values by the path of their attribute, sub-attributes within: what is read, or patched, before it is a resource
 * again.
 */
export type Draft = Map<string, AttributeValue>;

/** The most characters of what an index holds: PostgreSQL takes no more than 2704 bytes. */
const MAX_INDEXED = 512;

/** Whether a client can set it; a password is taken and dropped. */
export function isWritable({ attribute, sub }: AttributeReference): boolean {
  const { mutability } = attribute.mutability === 'readWrite' && sub ? sub : attribute;
  return mutability === 'readWrite' || mutability === 'immutable';
}

/** The path of the attribute, without the sub-attribute. */
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

/** A text that fits a column. */
export function textIn(draft: Draft, path: string): string | undefined {
  const value = draft.get(path);
  return typeof value === 'string' ? limited(path, value) : undefined;
}

/** @throws DomainError `invalid_value` for a text that no index holds */
export function limited(path: string, value: string): string {
  if (value.length <= MAX_INDEXED) return value;
  throw invalidValue(path, `must not be longer than ${MAX_INDEXED} characters`);
}
