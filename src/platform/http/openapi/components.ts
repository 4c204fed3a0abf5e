import { toJSONSchema, type ZodType } from 'zod';
import { plainSchema, type Direction } from './plain-schema.js';
import type { JsonSchema, Reference, ResponseObject } from './document-types.js';

/** Collects the schemas and responses that operations share. Equal content has one name. */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {};
  readonly responses: Record<string, ResponseObject> = {};
  /**
   * The component names of schemas. Each key has the id of the schema and its text with all parts.
   */
  readonly #names = new Map<string, string>();

  /**
   * Converts a Zod schema to JSON Schema. A schema with an `id` in its metadata becomes a
   * component.
   */
  schemaOf(schema: ZodType, io: Direction): JsonSchema {
    const { $schema: _, ...converted } = toJSONSchema(schema, {
      io,
      unrepresentable: 'any',
      override: ({ jsonSchema }) => plainSchema(jsonSchema, io),
    });
    const { $defs = {}, ...root } = converted as { $defs?: Record<string, JsonSchema> };
    const names = new Map(
      Object.keys($defs).map((id) => [id, this.#nameOf(id, expanded(id, $defs), io)]),
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
  keep(name: string, response: () => ResponseObject): Reference {
    this.responses[name] ??= response();
    return { $ref: `#/components/responses/${name}` };
  }

  /**
   * Returns the component name of a schema. If requests and responses have different forms of the
   * schema, each form gets a name.
   * @param text the schema with all its parts, by which equal schemas are recognized
   */
  #nameOf(id: string, text: string, io: Direction): string {
    const known = this.#names.get(`${id} ${text}`);
    if (known !== undefined) return known;
    const isTaken = [...this.#names.values()].includes(id);
    const name = isTaken ? `${id}${io === 'input' ? 'Input' : 'Output'}` : id;
    this.#names.set(`${id} ${text}`, name);
    return name;
  }
}

/**
 * Returns a schema as a text in which its parts stand in place of the references to them. Two
 * schemas are equal if these texts are equal.
 */
function expanded(id: string, defs: Readonly<Record<string, JsonSchema>>, depth = 0): string {
  const text = JSON.stringify(defs[id] ?? {});
  if (depth > DEEPEST) return text;
  return text.replaceAll(/"#\/\$defs\/([^"]+)"/g, (_, part: string) =>
    expanded(part, defs, depth + 1),
  );
}

/**
 * The deepest nesting of schemas that {@link expanded} follows. A schema that contains itself is
 * cut off there.
 */
const DEEPEST = 8;

/**
 * Copies a schema. Each reference into `$defs` becomes a reference to the component with that
 * schema.
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
