import type { JsonSchema } from '#platform/http/openapi/document-types.js';

/** A member of an object, as a row of the page. */
export interface SchemaRow {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
}

/** The deepest nesting of objects that a page shows. Deeper members are only in `/openapi.json`. */
const DEEPEST = 2;

/**
 * Lists the members of an object's schema as rows. Members of a nested object have a path as their
 * name: `record.name`.
 */
export function rowsOf(schema: JsonSchema, prefix = '', depth = 0): SchemaRow[] {
  const { properties = {}, required = [] } = schema as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).flatMap(([name, member]) => {
    const { description } = member;
    const row = {
      name: prefix + name,
      type: typeOf(member),
      required: required.includes(name),
      description: typeof description === 'string' ? description : '',
    };
    const inner = depth + 1 < DEEPEST ? innerOf(member) : undefined;
    return [row, ...(inner ? rowsOf(inner, `${prefix}${name}.`, depth + 1) : [])];
  });
}

/** Describes the type of a value in words. */
export function typeOf(schema: JsonSchema): string {
  const { $ref, type, items, anyOf, oneOf, const: constant, format } = schema;
  if (typeof $ref === 'string') return nameOf($ref);
  const members = schema['enum'];
  if (Array.isArray(members)) return members.map((one) => `"${String(one)}"`).join(' or ');
  if (constant !== undefined) return JSON.stringify(constant);
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return choices.map((one) => typeOf(one as JsonSchema)).join(' or ');
  if (type === 'array') return `list of ${typeOf((items ?? {}) as JsonSchema)}`;
  if (Array.isArray(type)) return type.join(' or ');
  if (typeof type !== 'string') return 'any value';
  return format === 'date-time' ? 'time' : type;
}

/**
 * Returns the names of the components to which a part of the OpenAPI document refers, directly or
 * through other components.
 */
export function componentsIn(
  part: unknown,
  components: Readonly<Record<string, JsonSchema>>,
  found = new Set<string>(),
): Set<string> {
  for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (found.has(name)) continue;
    found.add(name);
    componentsIn(components[name] ?? {}, components, found);
  }
  return found;
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/**
 * Returns the schema of the object that a value is, or of the objects in a list; undefined for any
 * other value.
 */
function innerOf(schema: JsonSchema): JsonSchema | undefined {
  const { type, items, anyOf } = schema;
  if (type === 'object') return schema;
  if (type === 'array') return innerOf((items ?? {}) as JsonSchema);
  const choices = Array.isArray(anyOf) ? (anyOf as JsonSchema[]) : [];
  return choices.find((choice) => choice['type'] === 'object');
}
