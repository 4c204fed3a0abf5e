import type { Filter } from './filter.js';

type Element = Extract<Filter, { kind: 'element' }>;

/**
 * Merges conditions on the same list, so that the list is read once. `emails[a] or emails[b]`
 * becomes `emails[a or b]`. `not emails[a] and not emails[b]` becomes `not emails[a or b]`. The
 * merged condition takes the place of the first of the conditions that it replaces.
 */
export function merged(filter: Filter): Filter {
  if (filter.kind === 'not') return { kind: 'not', operand: merged(filter.operand) };
  if (filter.kind === 'element') return { ...filter, where: merged(filter.where) };
  if (filter.kind !== 'and' && filter.kind !== 'or') return filter;
  const { kind } = filter;
  const operands = filter.operands.map(merged);
  const lists = new Map<string, Element[]>();
  const kept: (Filter | readonly Element[])[] = [];
  for (const operand of operands) {
    const element = mergeable(operand, kind);
    const same = element && lists.get(element.target.path);
    if (same) same.push(element);
    else if (element) {
      const list = [element];
      lists.set(element.target.path, list);
      kept.push(list);
    } else kept.push(operand);
  }
  const joined = kept.map((each) => ('kind' in each ? each : joinedBy(each, kind)));
  const [only] = joined;
  return joined.length === 1 && only ? only : { kind, operands: joined };
}

/**
 * Returns the condition on a list that can be merged: an operand of `or`, or the negated operand of
 * `and`; undefined for any other operand.
 */
function mergeable(operand: Filter, kind: 'and' | 'or'): Element | undefined {
  const inner = kind === 'and' && operand.kind === 'not' ? operand.operand : operand;
  return inner.kind === 'element' && (inner !== operand) === (kind === 'and') ? inner : undefined;
}

function joinedBy(elements: readonly Element[], kind: 'and' | 'or'): Filter {
  const [first] = elements;
  if (!first) throw new RangeError('the list has no elements');
  const one: Filter =
    elements.length === 1
      ? first
      : { ...first, where: merged({ kind: 'or', operands: elements.map(({ where }) => where) }) };
  return kind === 'and' ? { kind: 'not', operand: one } : one;
}

/**
 * Counts the conditions on lists in a filter that was {@link merged}. Their number is limited,
 * because each of them reads a list of every resource.
 */
export function listsIn(filter: Filter): number {
  if (filter.kind === 'element') return 1;
  if (filter.kind === 'present') {
    const { attribute, sub } = filter.target;
    return attribute.multiValued && attribute.subAttributes && !sub ? 1 : 0;
  }
  if (filter.kind === 'not') return listsIn(filter.operand);
  if (filter.kind !== 'and' && filter.kind !== 'or') return 0;
  return filter.operands.reduce((sum, operand) => sum + listsIn(operand), 0);
}
