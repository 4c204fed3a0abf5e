/** The direction of a body: `input` for requests, `output` for responses. */
export type Direction = 'input' | 'output';

/** A JSON Schema that may still be changed. */
type OpenSchema = Record<string, unknown>;

/**
 * Makes a JSON Schema of Zod plain for readers and for generators of clients: it drops what repeats
 * the type, and joins a type with null.
 */
export function plainSchema(schema: OpenSchema, io: Direction): void {
  // Zod writes `readOnly` for values that our code must not change. For clients of the API that
  // word has another meaning.
  delete schema['readOnly'];
  // A response may gain members within a version of the API.
  if (io === 'output' && schema['additionalProperties'] === false) {
    delete schema['additionalProperties'];
  }
  withoutRepetition(schema);
  joinNull(schema);
}

/** The formats that say what the pattern of Zod repeats. */
const FORMATS = new Set<unknown>(['date-time', 'uuid', 'uri']);

function withoutRepetition(schema: OpenSchema): void {
  const { type, format } = schema;
  if (FORMATS.has(format)) delete schema['pattern'];
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) delete schema['minimum'];
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum'];
  // A number or a truth value that a query has as text has the keywords of that text.
  if (type === 'integer' || type === 'boolean') {
    for (const keyword of ['pattern', 'enum', 'minLength', 'maxLength']) delete schema[keyword];
  }
}

/**
 * Joins the choice between null and one type that is no component: `{"type": ["string", "null"]}`.
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
