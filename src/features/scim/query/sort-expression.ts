import { DomainError } from '#platform/errors/domain-error.js';
import type { Attribute } from '../schema/attributes/attribute.js';
import type { FilterFields } from './filter-fields.js';
import type { AttributeReference } from '../schema/schemas.js';

/**
 * How many characters of an attribute count. A cursor says where a page ended, and has to fit into the head of a request.
 * What has a column has no more than 512 units of UTF-16, and counts whole, as its index has it.
 */
const MOST_CHARACTERS = 256;

/** What resources are sorted by: an expression, and whether every resource has it. */
export interface Sort {
  readonly expression: string;
  readonly isRequired: boolean;
}

/**
 * What resources are sorted by (RFC 7644 §3.4.2.3), as text that compares by code point, in ASCII lower case where case means
 * nothing. Of a multi-valued attribute its primary value counts, or else its first; of a long text its beginning.
 *
 * @throws DomainError invalid_value for an attribute that has no order
 */
export function sortExpression(target: AttributeReference, fields: FilterFields): Sort {
  const { attribute, sub, extension, path } = target;
  const column = Object.hasOwn(fields.columns, path) ? fields.columns[path] : undefined;
  const leaf = sub ?? attribute;
  if (column && column.kind !== 'relation') {
    const expression =
      column.kind === 'timestamp'
        ? `to_char(${column.expression} AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS') COLLATE "C"`
        : folded(`(${column.expression})::text`, leaf.caseExact);
    return { expression, isRequired: column.required ?? false };
  }
  const value = sub ?? attribute.subAttributes?.find(({ name }) => name === 'value');
  const isOrdered = attribute.subAttributes === undefined || value !== undefined;
  if (
    column ||
    fields.attributes === undefined ||
    !isKept(attribute) ||
    !isKept(leaf) ||
    !isOrdered
  ) {
    throw new DomainError('invalid_value', `Resources cannot be sorted by ${path}.`);
  }
  // Names of the schema table: none has a quote or a brace.
  const holder = extension ? `(${fields.attributes} -> '${extension}')` : fields.attributes;
  const whole = attribute.multiValued
    ? `coalesce(jsonb_path_query_first(${holder}, '$.${attribute.name}[*] ? (@.primary == true)'),
                ${holder} #> '{${attribute.name},0}')`
    : `(${holder} -> '${attribute.name}')`;
  const text = value ? `${whole} ->> '${value.name}'` : `${holder} ->> '${attribute.name}'`;
  return {
    expression: folded(`left(${text}, ${MOST_CHARACTERS})`, (value ?? attribute).caseExact),
    isRequired: false,
  };
}

/** Whether there are values of it: what nobody can write has none, and a password is dropped. */
function isKept({ mutability }: Attribute): boolean {
  return mutability === 'readWrite' || mutability === 'immutable';
}

function folded(text: string, caseExact: boolean): string {
  return caseExact ? `${text} COLLATE "C"` : `lower(${text} COLLATE "C")`;
}
