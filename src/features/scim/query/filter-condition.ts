import { asciiLowerCase } from '#platform/text/single-line.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { folded, ORDERS, quoted, TEXT_TESTS } from './comparison-sql.js';
import { merged } from './filter/filter-merging.js';
import type { Field, FilterFields } from './filter-fields.js';
import type { Filter } from './filter/filter.js';
import type { Literal, Operator } from '../schema/literal.js';
import { referenceTo, type AttributeReference } from '../schema/schemas.js';

/** A condition with `$n` in place of the values. */
export interface Condition {
  readonly text: string;
  readonly values: readonly string[];
}

/**
 * Writes a filter as an SQL condition. Nothing a client wrote becomes SQL: names come from the schema table, values
 * are bound.
 *
 * The condition is true exactly where the filter matches; elsewhere it is false or NULL, which `WHERE`, `AND` and `OR`
 * take alike. Whatever negates says `IS NOT TRUE`, so an absent attribute is not equal to anything, and `not` of what
 * is absent is true. All else stays bare, for an index can serve `lower(user_name COLLATE "C") = $1` but not `(…) IS
 * TRUE`.
 *
 * @param first the number of the first placeholder
 * @throws DomainError `invalid_filter` for an attribute that has no place in the database
 */
export function conditionOf(filter: Filter, fields: FilterFields, first = 1): Condition {
  const writer = new ConditionWriter(fields, first);
  return { text: writer.condition(merged(filter), writer.resource), values: writer.values };
}

/** How to reach the attributes at one level: of the resource, of a JSON element, of a related row. */
interface Level {
  /** The column of an attribute; undefined when it lies in JSON. */
  column(target: AttributeReference): Field | undefined;
  /** The JSON object an attribute lies in; undefined where there is none. */
  holder(target: AttributeReference): string | undefined;
}

/** One value: an expression that is NULL where there is none. */
interface Leaf {
  readonly kind: 'text' | 'boolean' | 'timestamp' | 'uuid';
  readonly expression: string;
}

/** The name of an array's element; elements have no arrays of their own, so one is enough. */
const ELEMENT = 'scim_element';
/** The name of a text that is tested several times. */
const TEXT = 'scim_text';

/** Matches the spelling of ids, so that an index serves the comparison. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

type Compare = Extract<Filter, { kind: 'compare' }>;

class ConditionWriter {
  readonly values: string[] = [];
  readonly resource: Level;
  readonly #fields: FilterFields;
  readonly #first: number;

  constructor(fields: FilterFields, first: number) {
    this.#fields = fields;
    this.#first = first;
    this.resource = {
      column: ({ path }) => own(fields.columns, path),
      holder: (target) => this.#holder(target),
    };
  }

  condition(filter: Filter, level: Level): string {
    if (filter.kind === 'not') return `(${this.condition(filter.operand, level)} IS NOT TRUE)`;
    if (filter.kind === 'present') return this.#present(filter.target, level);
    if (filter.kind === 'compare') {
      return this.#compare(filter.target, filter.operator, filter.value, level);
    }
    if (filter.kind === 'element') {
      const exists = this.#exists(filter.target, (element) =>
        this.condition(filter.where, element),
      );
      return `(${[...this.#narrowed(filter.where), exists].join(' AND ')})`;
    }
    if (filter.operands.length === 0) return 'false';
    const joint = filter.kind === 'and' ? ' AND ' : ' OR ';
    const operands = this.#byText(filter.operands, level).map((tests) =>
      'kind' in tests ? this.condition(tests, level) : this.#compareAll(tests, joint, level),
    );
    return `(${operands.join(joint)})`;
  }

  /** The operands, but those together that test the same text in JSON, where the first of them was. */
  #byText(operands: readonly Filter[], level: Level): (Filter | Compare[])[] {
    const texts = new Map<string, Compare[]>();
    const all: (Filter | Compare[])[] = [];
    for (const operand of operands) {
      const expression = operand.kind === 'compare' ? this.#textInJson(operand, level) : undefined;
      const same = expression === undefined ? undefined : texts.get(expression);
      if (operand.kind !== 'compare' || expression === undefined) all.push(operand);
      else if (same) same.push(operand);
      else {
        const tests = [operand];
        texts.set(expression, tests);
        all.push(tests);
      }
    }
    return all;
  }

  #textInJson({ target }: Compare, level: Level): string | undefined {
    if (target.path === 'schemas' || level.column(target)) return undefined;
    const { kind, expression } = this.#leaf(target, level);
    return kind === 'text' ? expression : undefined;
  }

  /** Tests of one text, which is taken out of its JSON and folded once. */
  #compareAll(tests: readonly Compare[], joint: string, level: Level): string {
    const [first] = tests;
    if (!first || tests.length === 1) {
      return tests.map((test) => this.condition(test, level)).join(joint);
    }
    const { caseExact } = first.target.sub ?? first.target.attribute;
    const text = folded(this.#leaf(first.target, level).expression, caseExact);
    const conditions = tests.map(({ operator, value }) =>
      this.#testText(TEXT, caseExact, operator, String(value)),
    );
    // OFFSET keeps the planner from writing the expression out again for each test.
    return `EXISTS (SELECT FROM (SELECT ${text} AS ${TEXT} OFFSET 0) AS t WHERE ${conditions.join(joint)})`;
  }

  #present(target: AttributeReference, level: Level): string {
    const { attribute, sub } = target;
    if (target.path === 'schemas') return 'true';
    if (sub || !attribute.subAttributes) return this.#presentLeaf(target, level);
    if (!attribute.multiValued) return this.#presentSome(target, level);
    return this.#exists(target, (element) => this.#presentSome(target, element));
  }

  /** A complex attribute is there when one of its sub-attributes is. */
  #presentSome(target: AttributeReference, level: Level): string {
    const subs = (target.attribute.subAttributes ?? []).map((sub) =>
      referenceTo(target.extension, target.attribute, sub),
    );
    const places = subs.filter(
      (sub) => level.column(sub) !== undefined || level.holder(sub) !== undefined,
    );
    if (places.length === 0) refuse(target);
    return `(${places.map((sub) => this.#presentLeaf(sub, level)).join(' OR ')})`;
  }

  #presentLeaf(target: AttributeReference, level: Level): string {
    const { kind, expression } = this.#leaf(target, level);
    return kind === 'text' ? `(${expression} <> '')` : `(${expression} IS NOT NULL)`;
  }

  #compare(target: AttributeReference, operator: Operator, literal: Literal, level: Level): string {
    const value = String(literal);
    if (target.path === 'schemas') return this.#compareSchemas(operator, value);
    const { kind, expression } = this.#leaf(target, level);
    if (kind === 'boolean') return `(${expression} = ${this.#bind(value)}::boolean)`;
    if (kind === 'timestamp') {
      // To the millisecond, which is what clients are shown.
      const instant = `date_trunc('milliseconds', ${expression})`;
      return `(${instant} ${ORDERS[operator]} ${this.#bind(value)}::timestamptz)`;
    }
    if (kind === 'uuid') {
      if (operator === 'eq') return this.#equalsUuid(expression, value);
      return this.#compareText(`${expression}::text`, true, operator, value);
    }
    const { caseExact } = target.sub ?? target.attribute;
    return this.#compareText(expression, caseExact, operator, value);
  }

  /** Bound as a uuid so that an index serves it; what is not spelled as we spell ids is nobody's id. */
  #equalsUuid(expression: string, value: string): string {
    return UUID.test(value) ? `(${expression} = ${this.#bind(value)}::uuid)` : 'false';
  }

  /**
   * Case folds in ASCII alone, as e-mail addresses do (`domain/users/email-address.ts`), and order is by code point,
   * so that the answer does not depend on the locale of a server.
   */
  #compareText(raw: string, caseExact: boolean, operator: Operator, value: string): string {
    return this.#testText(folded(raw, caseExact), caseExact, operator, value);
  }

  /** @param side as it compares, folded where case means nothing */
  #testText(side: string, caseExact: boolean, operator: Operator, value: string): string {
    const bound = `${this.#bind(caseExact ? value : asciiLowerCase(value))}::text`;
    return TEXT_TESTS[operator](side, bound);
  }

  /** `schemas` is stored nowhere: it is the core schema, and the extensions of which the resource has something. */
  #compareSchemas(operator: Operator, value: string): string {
    const { core, extensions } = this.#fields.resource;
    const used = extensions.map(({ id }) => {
      const holder = this.#root(id);
      return holder ? `(CASE WHEN ${holder} <> '{}' THEN ${quoted(id)} END)` : '(NULL)';
    });
    const rows = [`(${quoted(core.id)})`, ...used].join(', ');
    const matches = this.#compareText('scim_schema', true, operator, value);
    return `EXISTS (SELECT FROM (VALUES ${rows}) AS s (scim_schema) WHERE ${matches})`;
  }

  /** Some element, or related row, meets a condition. */
  #exists(target: AttributeReference, where: (element: Level) => string): string {
    const field = own(this.#fields.columns, target.path);
    if (field?.kind === 'relation') {
      const row: Level = {
        column: ({ sub }) => sub && own(field.fields, sub.name),
        holder: () => undefined,
      };
      return `EXISTS (SELECT FROM ${field.from} WHERE ${field.on} AND ${where(row)})`;
    }
    const holder = this.#holder(target);
    if (!holder || field) refuse(target);
    const array = `(${holder} -> ${quoted(target.attribute.name)})`;
    const elements = `CASE jsonb_typeof(${array}) WHEN 'array' THEN ${array} ELSE '[]' END`;
    const element: Level = { column: () => undefined, holder: () => ELEMENT };
    const rows = `jsonb_array_elements(${elements}) AS e (${ELEMENT})`;
    return `EXISTS (SELECT FROM ${rows} WHERE ${where(element)})`;
  }

  /** What an index can tell of elements that meet a condition: it leaves the database a few rows to look into. */
  #narrowed(where: Filter): string[] {
    if (where.kind === 'and') return where.operands.flatMap((operand) => this.#narrowed(operand));
    if (where.kind !== 'compare' || where.operator !== 'eq') return [];
    const narrow = own(this.#fields.narrowing ?? {}, where.target.path);
    if (!narrow) return [];
    const { caseExact } = where.target.sub ?? where.target.attribute;
    const value = String(where.value);
    return [narrow(`${this.#bind(caseExact ? value : asciiLowerCase(value))}::text`)];
  }

  #leaf(target: AttributeReference, level: Level): Leaf {
    const column = level.column(target);
    if (column) {
      if (column.kind === 'relation') refuse(target);
      return column;
    }
    const holder = level.holder(target);
    if (!holder) refuse(target);
    const { name, type } = target.sub ?? target.attribute;
    if (type !== 'boolean') return { kind: 'text', expression: `(${holder} ->> ${quoted(name)})` };
    const value = `${holder} -> ${quoted(name)}`;
    const expression = `(CASE ${value} WHEN 'true' THEN true WHEN 'false' THEN false END)`;
    return { kind: 'boolean', expression };
  }

  /** The JSON object in which an attribute, or the sub-attribute of a singular one, lies. */
  #holder({ extension, attribute, sub }: AttributeReference): string | undefined {
    // What clients cannot write is not among the attributes they wrote.
    if (attribute.mutability === 'readOnly') return undefined;
    const root = this.#root(extension);
    return root && sub ? `(${root} -> ${quoted(attribute.name)})` : root;
  }

  #root(extension: string | undefined): string | undefined {
    const { attributes } = this.#fields;
    return attributes && extension ? `(${attributes} -> ${quoted(extension)})` : attributes;
  }

  #bind(value: string): string {
    this.values.push(value);
    return `$${this.#first + this.values.length - 1}`;
  }
}

function own<Of>(fields: Readonly<Record<string, Of>>, name: string): Of | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function refuse({ path }: AttributeReference): never {
  throw new DomainError('invalid_filter', `Resources cannot be filtered by ${path}.`);
}
