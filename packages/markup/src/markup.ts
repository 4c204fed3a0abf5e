/** A piece of XML or HTML, whose values are escaped. */
export class Markup {
  /** @param text markup of the program itself, never a value from outside */
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

/** A value of a template: a text is escaped, and markup stays as it is. */
export type MarkupValue = string | number | boolean | Markup | readonly Markup[];

/** The first line of a document of XML. */
export const XML_DECLARATION = new Markup('<?xml version="1.0" encoding="UTF-8"?>\n');

/** The names of elements and attributes, with a prefix or without, from the letters of ASCII. */
const NAME = /^[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?$/;

/**
 * Writes markup by a template. It escapes every value for the text of an element and for an
 * attribute in quotes; a value belongs nowhere else.
 */
export function markup(pieces: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  const written = pieces.map((piece, index) => piece + textOf(values[index] ?? ''));
  return new Markup(written.join(''));
}

/**
 * Writes an element whose name is known at run time only.
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

/** Joins pieces to one. */
export function joined(pieces: readonly Markup[], separator = ''): Markup {
  return new Markup(pieces.map(({ text }) => text).join(escaped(separator)));
}

function textOf(value: MarkupValue): string {
  if (value instanceof Markup) return value.text;
  return typeof value === 'object' ? joined(value).text : escaped(String(value));
}

/** The characters that no document of XML has, not even as a reference (XML 1.0 §2.2). */
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
 * Escapes a text by the five entities that XML and HTML read alike. A character that XML
 * forbids becomes U+FFFD, because a document with one is no document.
 */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(FORBIDDEN, '\ufffd')
    .replaceAll(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
