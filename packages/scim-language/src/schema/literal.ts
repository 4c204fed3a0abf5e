import { asciiLowerCase } from '../text/ascii.js';
import type { AttributeType } from './attributes/attribute.js';

/**
 * The comparison operators of filters. `ne` is not among them, because the parser converts `a ne v`
 * to `not (a eq v)`.
 */
export type Operator = 'eq' | 'co' | 'sw' | 'ew' | 'gt' | 'ge' | 'lt' | 'le';

/**
 * The value in a comparison, in the type of its attribute. A dateTime is a text in ISO 8601 in UTC.
 */
export type Literal = string | boolean;

const OPERATORS: ReadonlySet<string> = new Set<Operator>([
  'eq',
  'co',
  'sw',
  'ew',
  'gt',
  'ge',
  'lt',
  'le',
]);
export const isOperator = (text: string): text is Operator => OPERATORS.has(text);

/**
 * The operators that each type allows. `gt` with a boolean or bytes is an error (RFC 7644
 * §3.4.2.2), and so is `co` with a time.
 */
export const COMPARABLE_BY: Record<AttributeType, ReadonlySet<Operator>> = {
  string: new Set(['eq', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le']),
  reference: new Set(['eq', 'co', 'sw', 'ew', 'gt', 'ge', 'lt', 'le']),
  binary: new Set(['eq', 'co', 'sw', 'ew']),
  boolean: new Set(['eq']),
  dateTime: new Set(['eq', 'gt', 'ge', 'lt', 'le']),
  integer: new Set(),
  complex: new Set(),
};

/** The value in a comparison as the filter has it, before the type of the attribute is known. */
export type RawLiteral = string | number | boolean | null;

/**
 * Converts the value in a comparison to the type of the attribute; undefined if it does not fit.
 */
export function literalOf(type: AttributeType, raw: RawLiteral): Literal | undefined {
  if (type === 'boolean') return booleanOf(raw);
  if (typeof raw !== 'string') return undefined;
  return type === 'dateTime' ? instantOf(raw) : raw;
}

/**
 * Reads a boolean, also from a string in any case as some clients write it; undefined for any other
 * value.
 */
export function booleanOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string' || value.length > 'false'.length) return undefined;
  const word = asciiLowerCase(value);
  return word === 'true' || word === 'false' ? word === 'true' : undefined;
}

/** Matches an xsd:dateTime (RFC 7643 §2.3.5). Each part has a fixed length, except the fraction. */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d)?$/i;

/**
 * Converts a time to the form that PostgreSQL reads in the same way with every setting. A time
 * without an offset is in UTC. Returns undefined for any other text.
 */
function instantOf(text: string): string | undefined {
  const parts = DATE_TIME.exec(text);
  if (!parts) return undefined;
  const instant = new Date(asciiUpperCase(parts[1] ? text : `${text}Z`));
  if (Number.isNaN(instant.getTime())) return undefined;
  const year = instant.getUTCFullYear();
  return year >= 1 && year <= 9999 ? instant.toISOString() : undefined;
}

const asciiUpperCase = (text: string): string => text.replace('t', 'T').replace('z', 'Z');

/**
 * Returns true if PostgreSQL can store a text. It can store neither U+0000 nor half of a surrogate
 * pair.
 */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * Returns true if PostgreSQL can store all texts in a value, at any depth, with the names of its
 * members.
 */
export function isStorableValue(value: unknown): boolean {
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next === 'string' && !isStorable(next)) return false;
    if (typeof next !== 'object' || next === null) continue;
    if (!Array.isArray(next) && !Object.keys(next).every(isStorable)) return false;
    for (const inner of Object.values(next)) pending.push(inner);
  }
  return true;
}
