import { toJSONSchema, type ZodType } from 'zod';
import type { JsonSchema, Reference, ResponseObject } from './document-types.js';

/** The direction of a body: `input` for requests, `output` for responses. */
export type Direction = 'input' | 'output';

/** Collects the schemas and responses that operations share. Equal content has one name. */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {};
  readonly responses: Record<string, ResponseObject> = {};

  /**
   * Converts a Zod schema to JSON Schema. A schema with an `id` in its metadata becomes a
   * component.
   */
  schemaOf(schema: ZodType, io: Direction): JsonSchema {
    const { $schema: _, ...converted } = toJSONSchema(schema, {
      io,
      unrepresentable: 'any',
      override: ({ jsonSchema }) => {
        // Zod writes `readOnly` for values that our code must not change. For clients of the API
        // that word has another meaning.
        delete jsonSchema.readOnly;
        // A response may gain members within a version of the API.
        if (io === 'output' && jsonSchema.additionalProperties === false) {
          delete jsonSchema.additionalProperties;
        }
      },
    });
    const { $defs = {}, ...root } = converted as { $defs?: Record<string, JsonSchema> };
    const names = new Map(
      Object.entries($defs).map(([id, def]) => [id, this.#nameOf(id, def, io)]),
    );
    const rename = (value: unknown): unknown => renamed(value, names);
    for (const [id, def] of Object.entries($defs)) {
      this.schemas[names.get(id) ?? id] = rename(def) as JsonSchema;
    }
    return rename(root) as JsonSchema;
  }

  /**
   * Adds a response under a name, unless the name already has one, and returns a reference to it.
   */
  keep(name: string, response: ResponseObject): Reference {
    this.responses[name] ??= response;
    return { $ref: `#/components/responses/${name}` };
  }

  /** Returns the name of a schema. A schema whose input and output differ gets a name for each. */
  #nameOf(id: string, def: JsonSchema, io: Direction): string {
    const known = this.schemas[id];
    const own = new Map([[id, id]]);
    const isSame = known === undefined || isEqual(known, renamed(def, own));
    if (isSame) return id;
    return io === 'input' ? `${id}Input` : `${id}Output`;
  }
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/**
 * Copies a schema. References into `$defs` become references to components, and the ids of Zod are
 * left out.
 */
function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((one) => renamed(one, names));
  if (typeof value !== 'object' || value === null) return value;
  const rows = Object.entries(value).map(([key, member]): [string, unknown] => {
    if (key !== '$ref' || typeof member !== 'string') return [key, renamed(member, names)];
    const id = member.replace('#/$defs/', '');
    return [key, `#/components/schemas/${names.get(id) ?? id}`];
  });
  return Object.fromEntries(rows);
}
