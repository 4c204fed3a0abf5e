import type { Operator } from '../schema/literal.js';

/** How instants compare; the parser lets nothing else reach one. */
export const ORDERS: Readonly<Partial<Record<Operator, string>>> = {
  eq: '=',
  gt: '>',
  ge: '>=',
  lt: '<',
  le: '<=',
};

/** How texts compare. No `LIKE`: a value has no wildcards. */
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

/** A name of the schema table as an SQL literal. */
export function quoted(name: string): string {
  return `'${name.replaceAll("'", "''")}'`;
}
