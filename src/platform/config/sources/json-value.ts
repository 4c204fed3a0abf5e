import { JSON_FORMS, type JsonForm } from '#platform/config/shapes/base-shapes.js';

/** The text of a variable, or the reason why a value of the document has none. */
export type VariableText = { readonly text: string } | { readonly problem: string };

/** The parts of a Zod schema that lead to the schema it was made of. */
interface MadeOf {
  readonly def?: { readonly innerType?: unknown; readonly in?: unknown };
}

const EXPECTED: Readonly<Record<JsonForm | 'string', string>> = {
  list: 'must be a string or an array of strings',
  pem: 'must be a string or an array of strings',
  number: 'must be a whole number',
  flag: 'must be true or false',
  string: 'must be a string',
};

/**
 * The problem of a value that names a file: the document is read on each machine, and knows no
 * machine's files.
 */
export const NOT_PEM = 'must be PEM or base64 of PEM; the document names no files';

/**
 * Returns the JSON form of a schema: that of the shape from which it is made; undefined for a plain
 * string.
 */
export function jsonFormOf(schema: unknown): JsonForm | undefined {
  let inner = schema;
  while (typeof inner === 'object' && inner !== null) {
    const form = JSON_FORMS.get(inner as Parameters<typeof JSON_FORMS.get>[0])?.form;
    if (form !== undefined) return form;
    const { def } = inner as MadeOf;
    inner = def?.innerType ?? def?.in;
  }
  return undefined;
}

/**
 * Writes a value of the document as its variable has it. An empty string is unset, as in a
 * variable.
 */
export function asVariable(value: unknown, form: JsonForm | undefined): VariableText {
  if (typeof value === 'string') return { text: value };
  if (form === 'number' && Number.isSafeInteger(value)) return { text: String(value) };
  if (form === 'flag' && typeof value === 'boolean') return { text: String(value) };
  if (form === 'list' && isTextArray(value)) return joined(value, ',');
  if (form === 'pem' && isTextArray(value)) return joined(value, '\n');
  return { problem: EXPECTED[form ?? 'string'] };
}

/**
 * An empty array is refused: as a variable it would be unset, and `allowed_domains: []` would
 * permit every domain.
 */
function joined(items: readonly string[], separator: ',' | '\n'): VariableText {
  if (items.length === 0) return { problem: 'must have an item, or be left out' };
  if (items.some((item) => item.trim() === '')) return { problem: 'has an empty item' };
  if (separator === ',' && items.some((item) => item.includes(','))) {
    return { problem: 'has an item with a comma' };
  }
  return { text: items.join(separator) };
}

function isTextArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
