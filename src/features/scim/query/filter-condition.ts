import { asciiLowerCase } from '#platform/text/single-line.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { folded, ORDERS, quoted, TEXT_TESTS } from './comparison-sql.js';
import {
  merged,
  referenceTo,
  type AttributeReference,
  type Filter,
  type Literal,
  type Operator,
} from '../language/scim-language.js';
import type { Field, FilterFields } from './filter-fields.js';

/** An SQL condition with the placeholders `$n`, and the values for them in their order. */
export interface Condition {
  readonly text: string;
  readonly values: readonly string[];
}

/**
 * Converts a SCIM filter to an SQL condition. No text of a client becomes SQL: names come from the
 * schema table, and values are bound.
 *
 * The condition is true if the filter matches, and otherwise false or NULL, which `WHERE`, `AND`
 * and `OR` treat alike. A negation uses `IS NOT TRUE`: a comparison with an absent attribute may be
 * NULL, and its negation must be true. No `IS TRUE` is added to other conditions, because an index
 * serves `lower(user_name COLLATE "C") = $1` but not `(…) IS TRUE`.
 *
 * @param first the number of the first placeholder
 * @throws DomainError `invalid_filter` for an attribute that the database does not store
 */
export function conditionOf(filter: Filter, fields: FilterFields, first = 1): Condition {
  const writer = new ConditionWriter(fields, first);
  return { text: writer.condition(merged(filter), writer.resource), values: writer.values };
}

/**
 * Finds the SQL of attributes on one level of a resource. A level is the resource itself, an
 * element of an array in its JSON, or a related row of another table.
 */
interface Level {
  /** The column of an attribute; undefined for an attribute in JSON. */
  column(target: AttributeReference): Field | undefined;
  /** The SQL of the JSON object that contains an attribute; undefined if there is none. */
  holder(target: AttributeReference): string | undefined;
}

/** An SQL expression for one value. It is NULL if the resource has no value. */
interface Leaf {
  readonly kind: 'text' | 'boolean' | 'timestamp' | 'uuid';
  readonly expression: string;
}

/**
 * The SQL name of an element of an array in JSON. One name is enough, because elements contain no
 * arrays.
 */
const ELEMENT = 'scim_element';
/** The SQL name of a text that several comparisons use. */
const TEXT = 'scim_text';

/**
 * Matches texts that are spelled like a UUID. Any other text cannot equal an id, so the database
 * does not compare it.
 */
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

  /**
   * Groups the comparisons of the same text in JSON, so that the text is extracted once for the
   * whole group. A group stands at the position of its first comparison.
   */
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

  /**
   * Returns the SQL of several comparisons of one text, which is extracted and lower-cased only
   * once.
   */
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
    // OFFSET keeps PostgreSQL from computing the text again in each comparison.
    return `EXISTS (SELECT FROM (SELECT ${text} AS ${TEXT} OFFSET 0) AS t WHERE ${conditions.join(joint)})`;
  }

  #present(target: AttributeReference, level: Level): string {
    const { attribute, sub } = target;
    if (target.path === 'schemas') return 'true';
    if (sub || !attribute.subAttributes) return this.#presentLeaf(target, level);
    if (!attribute.multiValued) return this.#presentSome(target, level);
    return this.#exists(target, (element) => this.#presentSome(target, element));
  }

  /**
   * Returns the condition that a complex attribute is present, which means that one of its
   * sub-attributes is present.
   */
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
      // Times are compared to the millisecond, because responses show them with that precision.
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

  /**
   * Binds the value as a uuid, so that an index serves the comparison. A value that is not spelled
   * like a UUID matches nothing.
   */
  #equalsUuid(expression: string, value: string): string {
    return UUID.test(value) ? `(${expression} = ${this.#bind(value)}::uuid)` : 'false';
  }

  /**
   * Compares a text. Only ASCII letters are lower-cased, as in e-mail addresses
   * (`domain/organizations/email-address.ts`), and the order is by code point. So the result does
   * not depend on the locale of the server.
   */
  #compareText(raw: string, caseExact: boolean, operator: Operator, value: string): string {
    return this.#testText(folded(raw, caseExact), caseExact, operator, value);
  }

  /**
   * Compares an expression with a value.
   * @param side the expression, already in lower case if the attribute compares without case
   */
  #testText(side: string, caseExact: boolean, operator: Operator, value: string): string {
    const bound = `${this.#bind(caseExact ? value : asciiLowerCase(value))}::text`;
    return TEXT_TESTS[operator](side, bound);
  }

  /**
   * Compares the attribute `schemas`, which is not stored. Its values are the core schema, and each
   * extension of which the resource has attributes.
   */
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

  /**
   * Returns the SQL condition that at least one element (or related row) of a multi-valued
   * attribute meets a condition.
   */
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

  /**
   * Returns conditions that are implied by a filter on an element, and for which the database has
   * an index. With them, the database reads the JSON of only a few rows.
   */
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

  /**
   * Returns the SQL of the JSON object that contains an attribute or sub-attribute; undefined if
   * the attribute is not stored in JSON.
   */
  #holder({ extension, attribute, sub }: AttributeReference): string | undefined {
    // Read-only attributes and sub-attributes are computed and not stored in JSON.
    if (attribute.mutability === 'readOnly' || sub?.mutability === 'readOnly') return undefined;
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
