import type { AttributeReference, Filter, Literal, Operator } from '@svc/scim-language';

type Json = unknown;

/**
 * Evaluates a SCIM filter on a whole resource, as a client sees the resource. It shares no code
 * with the conversion of filters to SQL, so that a test can compare the results of both.
 */
export function evaluate(filter: Filter, resource: object): boolean {
  return holds(filter, (target) => {
    const root = target.extension ? member(resource, target.extension) : resource;
    const value = member(root, target.attribute.name);
    return target.sub ? member(value, target.sub.name) : value;
  });
}

function holds(filter: Filter, read: (target: AttributeReference) => Json): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.operands.every((operand) => holds(operand, read));
    case 'or':
      return filter.operands.some((operand) => holds(operand, read));
    case 'not':
      return !holds(filter.operand, read);
    case 'present':
      return isPresent(read(filter.target));
    case 'compare':
      return compares(read(filter.target), filter.target, filter.operator, filter.value);
    case 'element':
      return elements(read(filter.target)).some((element) =>
        holds(filter.where, ({ sub }) => (sub ? member(element, sub.name) : undefined)),
      );
    default:
      throw new Error('no such filter');
  }
}

function isPresent(value: Json): boolean {
  if (value === undefined || value === null || value === '') return false;
  if (typeof value === 'object') return Object.values(value).some(isPresent);
  return true;
}

function compares(
  value: Json,
  target: AttributeReference,
  operator: Operator,
  literal: Literal,
): boolean {
  if (Array.isArray(value)) return value.some((each) => compares(each, target, operator, literal));
  if (typeof value !== 'string' && typeof value !== 'boolean') return false;
  const { type, caseExact } = target.sub ?? target.attribute;
  if (type === 'boolean') return value === literal;
  if (type === 'dateTime')
    return ordered(Date.parse(String(value)), Date.parse(String(literal)), operator);
  const fold = (text: string) =>
    caseExact ? text : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const [left, right] = [fold(String(value)), fold(String(literal))];
  if (operator === 'co') return left.includes(right);
  if (operator === 'sw') return left.startsWith(right);
  if (operator === 'ew') return left.endsWith(right);
  return ordered(Buffer.compare(Buffer.from(left), Buffer.from(right)), 0, operator);
}

function ordered(left: number, right: number, operator: Operator): boolean {
  if (operator === 'eq') return left === right;
  if (operator === 'gt') return left > right;
  if (operator === 'ge') return left >= right;
  if (operator === 'lt') return left < right;
  return operator === 'le' && left <= right;
}

const elements = (value: Json): readonly Json[] => (Array.isArray(value) ? value : []);

function member(of: Json, name: string): Json {
  return of !== null && typeof of === 'object' && Object.hasOwn(of, name)
    ? (of as Record<string, Json>)[name]
    : undefined;
}
