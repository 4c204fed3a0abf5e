import type { AttributeReference, Filter } from '@svc/scim-language';

/** Writes a parsed filter as text again (RFC 7644 §3.4.2.2), each condition in parentheses. */
export function filterText(filter: Filter): string {
  return textOf(filter, false);
}

/**
 * Writes the filter inside the brackets of a path, such as `type eq "work"` in
 * `emails[type eq "work"]`. Its attributes are sub-attributes, which stand there without the name
 * of their attribute.
 */
export function elementFilterText(filter: Filter): string {
  return textOf(filter, true);
}

/**
 * Writes a filter. If `isInside` is set, the filter is inside of brackets, so it names
 * sub-attributes without their attribute.
 */
function textOf(filter: Filter, isInside: boolean): string {
  switch (filter.kind) {
    case 'and':
    case 'or':
      return filter.operands
        .map((operand) => `(${textOf(operand, isInside)})`)
        .join(` ${filter.kind} `);
    case 'not':
      return `not (${textOf(filter.operand, isInside)})`;
    case 'present':
      return `${nameOf(filter.target, isInside)} pr`;
    case 'compare':
      return `${nameOf(filter.target, isInside)} ${filter.operator} ${JSON.stringify(filter.value)}`;
    case 'element':
      break;
  }
  return `${nameOf(filter.target, false)}[${textOf(filter.where, true)}]`;
}

function nameOf({ extension, attribute, sub }: AttributeReference, isInside: boolean): string {
  if (isInside) return sub?.name ?? attribute.name;
  const urn = extension === undefined ? '' : `${extension}:`;
  return `${urn}${attribute.name}${sub ? `.${sub.name}` : ''}`;
}
