/** A piece of XML or HTML. All values in it are already escaped. */
export class Markup {
  /** @param text markup of the program itself, never a value from outside */
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

/** A value of a template: a text is escaped, and markup stays as it is. */
export type MarkupValue = string | number | boolean | Markup | readonly Markup[];

/** The first line of an XML document. */
export const XML_DECLARATION = new Markup('<?xml version="1.0" encoding="UTF-8"?>\n');

/**
 * Matches the names of elements and attributes that are allowed: ASCII letters, digits and `_.-`,
 * with or without a prefix such as `xml:`.
 */
const NAME = /^[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?$/;

/**
 * Makes markup from a template literal, whose values are escaped. A value may stand in the text of
 * an element or in an attribute in quotes, and in no other place.
 */
export function markup(pieces: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  const written = pieces.map((piece, index) => piece + textOf(values[index] ?? ''));
  return new Markup(written.join(''));
}

/**
 * Makes an element whose name is known only at run time.
 *
 * @throws Error for a name that XML does not allow
 */
export function element(
  name: string,
  content: MarkupValue,
  attributes: Readonly<Record<string, string>> = {},
): Markup {
  const wrong = [name, ...Object.keys(attributes)].find((one) => !NAME.test(one));
  if (wrong !== undefined) throw new Error(`not a name of XML: ${JSON.stringify(wrong)}`);
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(value)}"`);
  return new Markup(`<${name}${written.join('')}>${textOf(content)}</${name}>`);
}

/** Joins pieces of markup into one. The separator is a text, and is escaped. */
export function joined(pieces: readonly Markup[], separator = ''): Markup {
  return new Markup(pieces.map(({ text }) => text).join(escaped(separator)));
}

function textOf(value: MarkupValue): string {
  if (value instanceof Markup) return value.text;
  return typeof value === 'object' ? joined(value).text : escaped(String(value));
}

/** The characters that an XML document must not have, not even as a reference (XML 1.0 §2.2). */
// oxlint-disable-next-line no-control-regex -- these are the characters that are replaced
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/**
 * Escapes a text by the five entities that XML and HTML have in common. A character that XML
 * forbids becomes U+FFFD, because no parser accepts a document with it.
 */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(FORBIDDEN, '\ufffd')
    .replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
