import type { ResourceSchema } from '../language/scim-language.js';

/**
 * The SQL of an attribute in columns or in related rows. The expressions come from a repository,
 * never from a client.
 */
export type Field =
  | {
      readonly kind: 'text' | 'boolean' | 'timestamp' | 'uuid';
      readonly expression: string;
      /** Never NULL. */
      readonly required?: true;
    }
  /** A multi-valued attribute in related rows: `EXISTS (SELECT FROM <from> WHERE <on> AND …)`. */
  | {
      readonly kind: 'relation';
      readonly from: string;
      readonly on: string;
      /** The fields by the name of the sub-attribute. */
      readonly fields: Readonly<Record<string, Field>>;
    };

/** The places of the attributes of a resource in the database. */
export interface FilterFields {
  readonly resource: ResourceSchema;
  /** The fields by the path of the attribute: `userName`, `meta.created`, `members`. */
  readonly columns: Readonly<Record<string, Field>>;
  /**
   * The `jsonb` of all other attributes, by canonical name; those of an extension are under its
   * URN.
   */
  readonly attributes?: string;
  /**
   * For a sub-attribute such as `emails.value`: a condition with an index that holds for every
   * resource with an element equal to a value. The condition on the JSON itself has no index. The
   * value is bound, in ASCII lower case if the attribute compares without case.
   */
  readonly narrowing?: Readonly<Record<string, (value: string) => string>>;
}
