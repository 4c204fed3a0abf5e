import type { Operator } from '../language/scim-language.js';

/**
 * The SQL operators that compare times, by the operators of SCIM. The parser allows no other
 * operator for a time.
 */
export const ORDERS: Readonly<Partial<Record<Operator, string>>> = {
  eq: '=',
  gt: '>',
  ge: '>=',
  lt: '<',
  le: '<=',
};

/**
 * The SQL that compares texts, by the operators of SCIM. `LIKE` is not used, because a `%` or `_`
 * in a value would be a wildcard.
 */
export const TEXT_TESTS: Readonly<Record<Operator, (side: string, value: string) => string>> = {
  eq: (side, value) => `(${side} = ${value})`,
  co: (side, value) => `(strpos(${side}, ${value}) > 0)`,
  sw: (side, value) => `starts_with(${side}, ${value})`,
  ew: (side, value) => `(right(${side}, length(${value})) = ${value})`,
  gt: (side, value) => `(${side} COLLATE "C" > ${value})`,
  ge: (side, value) => `(${side} COLLATE "C" >= ${value})`,
  lt: (side, value) => `(${side} COLLATE "C" < ${value})`,
  le: (side, value) => `(${side} COLLATE "C" <= ${value})`,
};

export function folded(raw: string, caseExact: boolean): string {
  return caseExact ? raw : `lower(${raw} COLLATE "C")`;
}

/** Quotes the name of an attribute as an SQL literal. */
export function quoted(name: string): string {
  return `'${name.replaceAll("'", "''")}'`;
}
