import type { Literal, Operator } from '../schema/literal.js';
import type { AttributeReference } from '../schema/schemas.js';

/**
 * A parsed filter (RFC 7644 §3.4.2.2). Its names are resolved, and its literals have the type of
 * their attribute. Spellings with the same meaning have one form:
 *
 * - `a ne v` is `not (a eq v)`.
 * - `a eq null` is `not (a pr)`.
 * - `emails co "x"` and `emails.value co "x"` are `emails[value co "x"]`.
 * - `emails[type eq "work"].value eq "x"` of Microsoft Entra is `emails[type eq "work" and value eq
 *   "x"]`.
 */
export type Filter =
  | { readonly kind: 'and'; readonly operands: readonly Filter[] }
  | { readonly kind: 'or'; readonly operands: readonly Filter[] }
  | { readonly kind: 'not'; readonly operand: Filter }
  /**
   * The condition that the attribute has a value. A complex attribute has a value if one of its
   * sub-attributes has one.
   */
  | { readonly kind: 'present'; readonly target: AttributeReference }
  | {
      readonly kind: 'compare';
      readonly target: AttributeReference;
      readonly operator: Operator;
      readonly value: Literal;
    }
  /**
   * The condition that one element of a multi-valued attribute meets `where`, whose targets are
   * sub-attributes.
   */
  | { readonly kind: 'element'; readonly target: AttributeReference; readonly where: Filter };
