/** The direction of a body: `input` for requests, `output` for responses. */
export type Direction = 'input' | 'output';

/** A JSON Schema that may still be changed. */
type OpenSchema = Record<string, unknown>;

/**
 * Simplifies a JSON Schema that Zod made, for readers and for generators of clients. It drops
 * keywords that repeat the type, and joins a type with null. The schema is changed in place.
 */
export function plainSchema(schema: OpenSchema, io: Direction): void {
  // Zod writes `readOnly` for values that our code must not change. In OpenAPI the word means that
  // clients should not send the value.
  delete schema['readOnly'];
  // A response may gain members within a version of the API, so clients must accept unknown
  // members.
  if (io === 'output' && schema['additionalProperties'] === false) {
    delete schema['additionalProperties'];
  }
  withoutRepetition(schema);
  joinNull(schema);
}

/** The formats for which Zod also writes a `pattern` that says the same. */
const FORMATS = new Set<unknown>(['date-time', 'uuid', 'uri']);

function withoutRepetition(schema: OpenSchema): void {
  const { type, format } = schema;
  if (FORMATS.has(format)) delete schema['pattern'];
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) delete schema['minimum'];
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum'];
  // A query has numbers and booleans as text. Zod then adds the keywords of that text, which do not
  // fit the type.
  if (type === 'integer' || type === 'boolean') {
    for (const keyword of ['pattern', 'enum', 'minLength', 'maxLength']) delete schema[keyword];
  }
}

/**
 * Writes a choice between null and one type as one type: `{"type": ["string", "null"]}`. A
 * reference to a component is left as it is.
 */
function joinNull(schema: OpenSchema): void {
  const choices = schema['anyOf'];
  if (!Array.isArray(choices) || choices.length !== 2) return;
  const [one, none] = choices as [OpenSchema, OpenSchema];
  if (none['type'] !== 'null' || typeof one['type'] !== 'string' || '$ref' in one) return;
  delete schema['anyOf'];
  const { enum: members, const: only, ...rest } = one;
  const values = Array.isArray(members) ? (members as unknown[]) : only === undefined ? [] : [only];
  Object.assign(schema, { ...rest, ...schema, type: [one['type'], 'null'] });
  if (values.length > 0) schema['enum'] = [...values, null];
}
