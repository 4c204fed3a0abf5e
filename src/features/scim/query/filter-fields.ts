import type { ResourceSchema } from '../language/scim-language.js';

/**
 * Tells where an attribute is stored that is not in the JSON column: in a column or in related
 * rows, as SQL expressions. The expressions come from a repository and never from a client, so that
 * they are safe to execute.
 */
export type Field =
  | {
      readonly kind: 'text' | 'boolean' | 'timestamp' | 'uuid';
      readonly expression: string;
      /** True for an expression that is never NULL. */
      readonly required?: true;
    }
  /** A multi-valued attribute in related rows: `EXISTS (SELECT FROM <from> WHERE <on> AND …)`. */
  | {
      readonly kind: 'relation';
      readonly from: string;
      readonly on: string;
      /** The fields of a related row by the names of the sub-attributes. */
      readonly fields: Readonly<Record<string, Field>>;
    };

/** Tells where each attribute of a resource is stored in the database. */
export interface FilterFields {
  readonly resource: ResourceSchema;
  /**
   * The attributes that are not in the JSON column, by their path: `userName`, `meta.created`,
   * `members`.
   */
  readonly columns: Readonly<Record<string, Field>>;
  /**
   * The SQL of the `jsonb` column that has all other attributes by their canonical names. Those of
   * an extension are under its URN.
   */
  readonly attributes?: string;
  /**
   * Returns, for a sub-attribute such as `emails.value`, an additional condition for which the
   * database has an index. No index serves the condition on the JSON itself. The additional
   * condition is true for every resource that has an element with the value. The value is bound, in
   * ASCII lower case if the attribute compares without case.
   */
  readonly narrowing?: Readonly<Record<string, (value: string) => string>>;
}
