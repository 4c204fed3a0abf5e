import type { ResourceSchema } from '../schema/schemas.js';

/**
 * The SQL of an attribute that has a column of its own, or rows. The expressions are the repository's, never a
 * client's.
 */
export type Field =
  | {
      readonly kind: 'text' | 'boolean' | 'timestamp' | 'uuid';
      readonly expression: string;
      /** Never NULL. */
      readonly required?: true;
    }
  /** A multi-valued attribute that is rows: `EXISTS (SELECT FROM <from> WHERE <on> AND …)`. */
  | {
      readonly kind: 'relation';
      readonly from: string;
      readonly on: string;
      /** By the name of the sub-attribute. */
      readonly fields: Readonly<Record<string, Field>>;
    };

/** Where the attributes of a resource are. */
export interface FilterFields {
  readonly resource: ResourceSchema;
  /** By the path of the attribute: `userName`, `meta.created`, `members`. */
  readonly columns: Readonly<Record<string, Field>>;
  /** The `jsonb` of all other attributes, in canonical case, an extension's under its URN. */
  readonly attributes?: string;
  /**
   * By the path of a sub-attribute, `emails.value`: what is true of every resource with an element that equals a value, and has an
   * index, as nothing does that looks into JSON. The value is bound, in ASCII lower case where case means nothing.
   */
  readonly narrowing?: Readonly<Record<string, (value: string) => string>>;
}
