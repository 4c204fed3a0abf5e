import type { ResourceSchema } from '../language/scim-language.js';

/**
 * The place of an attribute in columns or in related rows, as SQL. The expressions come from a
 * repository, never from a client.
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

/** The places of the attributes of a resource in the database. */
export interface FilterFields {
  readonly resource: ResourceSchema;
  /** The fields by the path of the attribute: `userName`, `meta.created`, `members`. */
  readonly columns: Readonly<Record<string, Field>>;
  /**
   * The SQL of the `jsonb` with all other attributes by their canonical names. Those of an
   * extension are under its URN.
   */
  readonly attributes?: string;
  /**
   * Writes, for a sub-attribute such as `emails.value`, a condition that an index serves. It holds
   * for every resource that has an element with a value. It is needed because no index serves the
   * condition on the JSON itself. The value is bound, in ASCII lower case if the attribute compares
   * without case.
   */
  readonly narrowing?: Readonly<Record<string, (value: string) => string>>;
}
