import { asciiLowerCase } from '../text/ascii.js';
import type { ComplexValue } from '../schema/attribute-value.js';
import type { Filter } from './filter.js';
import type { Operator } from '../schema/literal.js';

/**
 * Returns true if an element of a multi-valued attribute meets the filter between the brackets of a
 * path. The filter means the same as in a search for resources.
 */
export function meets(element: ComplexValue, filter: Filter): boolean {
  if (filter.kind === 'and') return filter.operands.every((operand) => meets(element, operand));
  if (filter.kind === 'or') return filter.operands.some((operand) => meets(element, operand));
  if (filter.kind === 'not') return !meets(element, filter.operand);
  if (filter.kind === 'element') return false; // no sub-attribute is multi-valued
  const { sub } = filter.target;
  const value = sub && element[sub.name];
  if (filter.kind === 'present') return value !== undefined;
  if (value === undefined || !sub) return false;
  if (typeof value === 'boolean') return value === filter.value;
  const fold = (text: string) => (sub.caseExact ? text : asciiLowerCase(text));
  return TESTS[filter.operator](fold(value), fold(String(filter.value)));
}

const order = (left: string, right: string): number =>
  Buffer.compare(Buffer.from(left), Buffer.from(right));

const TESTS: Readonly<Record<Operator, (left: string, right: string) => boolean>> = {
  eq: (left, right) => left === right,
  co: (left, right) => left.includes(right),
  sw: (left, right) => left.startsWith(right),
  ew: (left, right) => left.endsWith(right),
  gt: (left, right) => order(left, right) > 0,
  ge: (left, right) => order(left, right) >= 0,
  lt: (left, right) => order(left, right) < 0,
  le: (left, right) => order(left, right) <= 0,
};

/**
 * Returns the element that a filter describes by `type eq "mobile"`, or by several such comparisons
 * joined by `and`. A PATCH can then create the element if no element meets the filter.
 *
 * @returns undefined for a filter that does not determine an element
 */
export function impliedElement(filter: Filter): ComplexValue | undefined {
  const implied = Object.create(null) as ComplexValue;
  for (const part of filter.kind === 'and' ? filter.operands : [filter]) {
    const sub = part.kind === 'compare' && part.operator === 'eq' ? part.target.sub : undefined;
    if (!sub || part.kind !== 'compare' || sub.mutability === 'readOnly') return undefined;
    implied[sub.name] = part.value;
  }
  return meets(implied, filter) ? implied : undefined;
}
