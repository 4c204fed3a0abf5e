import { asciiLowerCase } from '../text/ascii.js';
import { ScimError } from '../errors/scim-error.js';
import type { Filter } from './filter.js';
import { listsIn, merged } from './filter-merging.js';
import { TokenReader, type ParseErrorCode, type Word } from './token-reader.js';
import {
  COMPARABLE_BY,
  isOperator,
  literalOf,
  type Operator,
  type RawLiteral,
} from '../schema/literal.js';
import {
  findAttribute,
  findSchema,
  referenceTo,
  subAttribute,
  type AttributeReference,
  type ResourceSchema,
  type Schema,
} from '../schema/schemas.js';

/** The target of the `path` of a PATCH operation (RFC 7644 §3.5.2). */
export type PatchPath =
  | {
      readonly kind: 'attribute';
      readonly target: AttributeReference;
      readonly filter: Filter | undefined;
    }
  /**
   * A URN alone: that of an extension, or the URN of the core schema, which stands for the whole
   * resource.
   */
  | { readonly kind: 'schema'; readonly schema: Schema }
  /** An unknown attribute, by its name in lower case. */
  | { readonly kind: 'unknown'; readonly name: string };

const MAX_DEPTH = 32;
const MAX_NODES = 200;
/**
 * The largest number of conditions on multi-valued attributes in a filter, counted after those that
 * can be merged have been merged. Such a condition costs far more than the comparison of one value.
 * Identity providers send one.
 */
const MAX_LISTS = 20;

/**
 * Parses a filter.
 * @param others the resource types that are searched together with this one. Their attributes are
 *   allowed in the filter, but have no value in this type (RFC 7644 §3.4.2.1).
 * @throws ScimError `invalidFilter` for a text that is not a filter, an unknown attribute, an
 *   operator that the attribute does not take, or a filter that is too large; `tooMany` for a
 *   filter with too many conditions on lists
 */
export function parseFilter(
  text: string,
  resource: ResourceSchema,
  others: readonly ResourceSchema[] = [],
): Filter {
  return new Parser(text, resource, 'invalidFilter', others).filter();
}

/**
 * Parses the path of a PATCH operation.
 * @throws ScimError `invalidPath` for a text that is not a path, `invalidFilter` for a fault
 *   between its brackets
 */
export function parsePath(text: string, resource: ResourceSchema): PatchPath {
  return new Parser(text, resource, 'invalidPath').path();
}

/**
 * A filter that matches no resource. It replaces a condition on an attribute that this resource
 * type does not have.
 */
const NOTHING: Filter = { kind: 'or', operands: [] };

/**
 * Parses a filter or path by recursive descent. Each token is read once, and only brackets recurse.
 * So the time grows in proportion to the length of the text.
 */
class Parser {
  readonly #resource: ResourceSchema;
  readonly #others: readonly ResourceSchema[];
  readonly #reader: TokenReader;
  #nodes = 0;

  constructor(
    text: string,
    resource: ResourceSchema,
    code: ParseErrorCode,
    others: readonly ResourceSchema[] = [],
  ) {
    this.#resource = resource;
    this.#others = others;
    this.#reader = new TokenReader(text, code);
  }

  /**
   * Parses the whole text as a filter.
   * @throws ScimError `tooMany` for too many conditions on lists
   */
  filter(): Filter {
    const filter = this.#disjunction(undefined, 0);
    this.#reader.end();
    if (listsIn(filter) > MAX_LISTS && listsIn(merged(filter)) > MAX_LISTS) {
      throw new ScimError('tooMany', 'The filter has too many conditions on lists of values.');
    }
    return filter;
  }

  /** Parses the whole text as a path. */
  path(): PatchPath {
    const word = this.#reader.word();
    const target = findAttribute(this.#resource, word.text);
    if (!target) return this.#withoutAttribute(word);
    const filter = this.#reader.peek()?.kind === '[' ? this.#choice(target) : undefined;
    const suffix = filter ? this.#reader.suffix() : undefined;
    this.#reader.end();
    if (!suffix) return { kind: 'attribute', target, filter };
    const sub = subAttribute(target.attribute, suffix.text);
    if (!sub) return { kind: 'unknown', name: asciiLowerCase(`${target.path}.${suffix.text}`) };
    const of = referenceTo(target.extension, target.attribute, sub);
    return { kind: 'attribute', target: of, filter };
  }

  /**
   * Parses the brackets of a path. A fault between them gets the error `invalidFilter` (RFC 7644
   * §3.12).
   */
  #choice(target: AttributeReference): Filter {
    this.#checkElements(target);
    this.#reader.code = 'invalidFilter';
    const filter = this.#brackets(target, 0);
    this.#reader.code = 'invalidPath';
    return filter;
  }

  #withoutAttribute(word: Word): PatchPath {
    const schema = findSchema(this.#resource, word.text);
    if (schema) {
      this.#reader.end();
      return { kind: 'schema', schema };
    }
    if (!/^[!-~]+$/.test(word.text)) this.#reader.refuse('is not an attribute name', word.at);
    // The brackets of an unknown attribute are skipped, because their content cannot be parsed
    // without its schema.
    if (this.#reader.peek()?.kind !== '[') this.#reader.end();
    return { kind: 'unknown', name: asciiLowerCase(word.text) };
  }

  /**
   * Parses conditions that are joined by `or`. Between brackets, `element` is the attribute before
   * the brackets.
   */
  #disjunction(element: AttributeReference | undefined, depth: number): Filter {
    const first = this.#conjunction(element, depth);
    const operands = [first];
    while (this.#reader.takeWord('or')) operands.push(this.#conjunction(element, depth));
    return operands.length === 1 ? first : this.#node({ kind: 'or', operands });
  }

  /** Parses conditions that are joined by `and`, which binds tighter than `or`. */
  #conjunction(element: AttributeReference | undefined, depth: number): Filter {
    const first = this.#factor(element, depth);
    const operands = [first];
    while (this.#reader.takeWord('and')) operands.push(this.#factor(element, depth));
    return operands.length === 1 ? first : this.#node({ kind: 'and', operands });
  }

  #factor(element: AttributeReference | undefined, depth: number): Filter {
    if (this.#reader.peek(1)?.kind === '(' && this.#reader.takeWord('not')) {
      return this.#not(this.#group(element, depth));
    }
    if (this.#reader.peek()?.kind === '(') return this.#group(element, depth);
    return element ? this.#onElement(element) : this.#onResource(depth);
  }

  #group(element: AttributeReference | undefined, depth: number): Filter {
    this.#reader.bracket('(');
    const inner = this.#disjunction(element, this.#deeper(depth));
    this.#reader.bracket(')');
    return inner;
  }

  #brackets(target: AttributeReference, depth: number): Filter {
    this.#checkElements(target);
    this.#reader.bracket('[');
    const where = this.#disjunction(target, this.#deeper(depth));
    this.#reader.bracket(']');
    return where;
  }

  #onElement(element: AttributeReference): Filter {
    const word = this.#reader.word();
    return this.#expression(this.#subOf(element, word.text, word.at), (leaf) => leaf);
  }

  #onResource(depth: number): Filter {
    const word = this.#reader.word();
    const target = this.#find(word.text);
    if (!target) this.#reader.refuse('is not a known attribute', word.at);
    if (target.attribute.returned === 'never') this.#reader.refuse('cannot be read', word.at);
    if (this.#reader.peek()?.kind === '[') return this.#valuePath(target, depth);
    const isOfElements = target.attribute.multiValued && target.attribute.subAttributes;
    const whole = referenceTo(target.extension, target.attribute);
    return this.#expression(target, (leaf) =>
      isOfElements ? this.#node({ kind: 'element', target: whole, where: leaf }) : leaf,
    );
  }

  #valuePath(target: AttributeReference, depth: number): Filter {
    const where = this.#brackets(target, depth);
    const suffix = this.#reader.suffix();
    if (!suffix) return this.#node({ kind: 'element', target, where });
    const sub = this.#subOf(target, suffix.text, suffix.at);
    const operands = [where, this.#expression(sub, (leaf) => leaf)];
    return this.#node({ kind: 'element', target, where: this.#node({ kind: 'and', operands }) });
  }

  /**
   * Parses the rest of a condition: `pr`, or an operator and a literal. `wrap` makes the result a
   * condition on an element, if the attribute is multi-valued.
   */
  #expression(target: AttributeReference, wrap: (leaf: Filter) => Filter): Filter {
    const word = this.#reader.word();
    const operator = asciiLowerCase(word.text);
    if (operator === 'pr') return this.#present(target, wrap);
    const isNegated = operator === 'ne';
    const positive = isNegated ? 'eq' : operator;
    if (!isOperator(positive)) this.#reader.refuse('is not an operator', word.at);
    const raw = this.#reader.literal();
    if (raw === null && positive === 'eq') {
      const present = this.#present(target, wrap);
      return isNegated ? present : this.#not(present);
    }
    const compared = this.#compare(target, positive, raw, word.at);
    const found = wrap(this.#node(compared));
    return isNegated ? this.#not(found) : found;
  }

  #present(target: AttributeReference, wrap: (leaf: Filter) => Filter): Filter {
    const leaf = this.#node({ kind: 'present', target });
    return target.sub ? wrap(leaf) : leaf;
  }

  #compare(named: AttributeReference, operator: Operator, raw: RawLiteral, at: number): Filter {
    const target = named.sub ? named : this.#default(named, at);
    const { type } = target.sub ?? target.attribute;
    if (!COMPARABLE_BY[type].has(operator)) {
      this.#reader.refuse(`does not apply to ${target.path}`, at);
    }
    const value = literalOf(type, raw);
    if (value === undefined)
      this.#reader.refuse(`must be followed by a ${type} for ${target.path}`, at);
    // A unique name is stored without blanks around it. A client that searches for the name with
    // blanks must find the resource, because it cannot create another one.
    const isTrimmed = operator === 'eq' && target.attribute.uniqueness === 'server';
    return { kind: 'compare', target, operator, value: isTrimmed ? String(value).trim() : value };
  }

  /**
   * Returns the attribute that a comparison reads. A complex attribute stands for its sub-attribute
   * `value` (RFC 7643 §2.4).
   */
  #default(named: AttributeReference, at: number): AttributeReference {
    return named.attribute.subAttributes ? this.#subOf(named, 'value', at) : named;
  }

  #subOf(of: AttributeReference, name: string, at: number): AttributeReference {
    const sub = subAttribute(of.attribute, name);
    if (!sub) this.#reader.refuse(`must be a sub-attribute of ${of.path}`, at);
    return referenceTo(of.extension, of.attribute, sub);
  }

  #checkElements(target: AttributeReference): void {
    if (target.sub || !target.attribute.multiValued || !target.attribute.subAttributes) {
      this.#reader.refuse(
        `is not allowed: ${target.path} has no elements`,
        this.#reader.peek()?.at,
      );
    }
  }

  #not(operand: Filter): Filter {
    return this.#node({ kind: 'not', operand });
  }

  #node(filter: Filter): Filter {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES)
      throw new ScimError(this.#reader.code, 'The filter has too many conditions.');
    const isOfOtherResource =
      'target' in filter && findAttribute(this.#resource, filter.target.path) === undefined;
    return isOfOtherResource ? NOTHING : filter;
  }

  #find(name: string): AttributeReference | undefined {
    for (const resource of [this.#resource, ...this.#others]) {
      const found = findAttribute(resource, name);
      if (found) return found;
    }
    return undefined;
  }

  #deeper(depth: number): number {
    if (depth >= MAX_DEPTH)
      throw new ScimError(this.#reader.code, 'The brackets are nested too deep.');
    return depth + 1;
  }
}
