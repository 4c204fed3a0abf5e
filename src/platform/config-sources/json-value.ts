import { JSON_FORMS, type JsonForm } from '#platform/config/table/shapes.js';

/** The text of an environment variable, or the reason why a value of the document cannot be one. */
export type VariableText = { readonly text: string } | { readonly problem: string };

const EXPECTED: Readonly<Record<JsonForm | 'string', string>> = {
  list: 'must be a string or an array of strings',
  pem: 'must be a string or an array of strings',
  number: 'must be a whole number',
  flag: 'must be true or false',
  string: 'must be a string',
};

/**
 * The properties in which a Zod schema keeps the schema that it was made from: `innerType` if it is
 * a wrapper such as `optional()`, `in` if it is a `pipe()`.
 */
interface MadeOf {
  readonly def?: { readonly innerType?: unknown; readonly in?: unknown };
}

/**
 * Returns the form, such as a list or a number, that a setting has in the JSON document; undefined
 * for a plain string. A schema without a registered form has that of the schema from which it was
 * derived.
 */
export function jsonFormOf(schema: unknown): JsonForm | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const { def } = schema as MadeOf;
  const own = JSON_FORMS.get(schema as Parameters<typeof JSON_FORMS.get>[0])?.form;
  return own ?? jsonFormOf(def?.innerType ?? def?.in);
}

/**
 * Converts a value of the configuration document to the text of its environment variable. An empty
 * string counts as unset, as an empty variable does.
 */
export function asVariable(value: unknown, form: JsonForm | undefined): VariableText {
  if (typeof value === 'string') return { text: value };
  const isText =
    form === 'number' ? Number.isSafeInteger(value) : form === 'flag' && typeof value === 'boolean';
  if (isText) return { text: String(value) };
  if (form === 'list' && isTextArray(value)) return joined(value, ',');
  if (form === 'pem' && isTextArray(value)) return joined(value, '\n');
  return { problem: EXPECTED[form ?? 'string'] };
}

/**
 * Joins the items of an array to the text of a variable. An empty array is refused: as a variable
 * it would be unset, and `allowed_domains: []` would permit every domain.
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
