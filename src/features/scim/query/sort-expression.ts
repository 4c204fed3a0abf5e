import { DomainError } from '#platform/errors/domain-error.js';
import type { Attribute, AttributeReference } from '../language/scim-language.js';
import type { FilterFields } from './filter-fields.js';

/**
 * The number of leading characters by which an attribute without a column of its own is sorted. The
 * number is limited, because a cursor contains them and must fit into the request line. Attributes
 * with a column have at most 512 units of UTF-16, and are sorted by the whole text, as in their
 * index.
 */
const MOST_CHARACTERS = 256;

/**
 * The SQL expression by which a search sorts. `isRequired` is true if every resource has a value.
 */
export interface Sort {
  readonly expression: string;
  readonly isRequired: boolean;
}

/**
 * Returns the expression by which a search sorts (RFC 7644 §3.4.2.3). It is a text that compares by
 * code point, in ASCII lower case if the attribute compares without case. A multi-valued attribute
 * sorts by its primary or else first value, and a long text by its beginning.
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
  // The names come from the schema table, and contain neither quotes nor braces, so that they are
  // safe in SQL.
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

/**
 * Returns true if the database stores the values of an attribute. Read-only attributes are
 * computed, and passwords are never stored.
 */
function isKept({ mutability }: Attribute): boolean {
  return mutability === 'readWrite' || mutability === 'immutable';
}

function folded(text: string, caseExact: boolean): string {
  return caseExact ? `${text} COLLATE "C"` : `lower(${text} COLLATE "C")`;
}
