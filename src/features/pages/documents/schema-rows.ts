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

/** Describes the type of a value in words, with its limits: `integer, at least 1, at most 200`. */
export function typeOf(schema: JsonSchema): string {
  const limits = limitsOf(schema);
  return [baseOf(schema), ...limits].join(', ');
}

/**
 * The keywords of JSON Schema that limit a value, each with the words before and after its number.
 */
const LIMITS = [
  ['minimum', 'at least'],
  ['maximum', 'at most'],
  ['minLength', 'at least', 'characters'],
  ['maxLength', 'at most', 'characters'],
  ['minItems', 'at least', 'items'],
  ['maxItems', 'at most', 'items'],
] as const;

function limitsOf(schema: JsonSchema): string[] {
  const limits = LIMITS.flatMap(([keyword, words, unit]) => {
    const value = schema[keyword];
    if (typeof value !== 'number') return [];
    return [unit === undefined ? `${words} ${value}` : `${words} ${value} ${unit}`];
  });
  const { default: usual } = schema;
  const isPlain = ['string', 'number', 'boolean'].includes(typeof usual) && usual !== '';
  return isPlain ? [...limits, `default ${JSON.stringify(usual)}`] : limits;
}

function baseOf(schema: JsonSchema): string {
  const { $ref, type, items, anyOf, oneOf, const: constant, format } = schema;
  if (typeof $ref === 'string') return nameOf($ref);
  const members = schema['enum'];
  if (Array.isArray(members)) return members.map((one) => JSON.stringify(one)).join(' or ');
  if (constant !== undefined) return JSON.stringify(constant);
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return choices.map((one) => baseOf(one as JsonSchema)).join(' or ');
  const types = [type].flat().map((one) => nameOfType(one, format));
  if (type !== 'array') return types.join(' or ');
  return `list of ${baseOf((items ?? {}) as JsonSchema)}`;
}

function nameOfType(type: unknown, format: unknown): string {
  if (typeof type !== 'string') return 'any value';
  if (type !== 'string') return type;
  return format === 'date-time' ? 'time' : format === 'uuid' ? 'UUID' : 'string';
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
