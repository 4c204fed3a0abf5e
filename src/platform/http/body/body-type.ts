import type { BodyKind } from '#platform/http/routing/route-policy.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** How a body is read: a media type, or not at all. */
export interface BodyReader {
  /** As a client is told it. */
  readonly name: string;
  readonly accepts: RegExp;
  /** @throws DomainError malformed_body or invalid_request */
  readonly parse: (text: string) => unknown;
}

const JSON_READER = {
  name: 'application/json',
  accepts: /^application\/(?:[\w.-]+\+)?json$/i,
  parse: parseJson,
} as const;

/** The types of body that routes read. */
export const BODY_READERS = {
  json: JSON_READER,
  /** The same, told in the words of RFC 7644 §3.1. */
  scim: { ...JSON_READER, name: 'application/scim+json or application/json' },
  form: {
    name: 'application/x-www-form-urlencoded',
    accepts: /^application\/x-www-form-urlencoded$/i,
    parse: parseForm,
  },
  /** For OAuth, where one parameter may come twice (RFC 8707 §2), and the library says which. */
  fields: {
    name: 'application/x-www-form-urlencoded',
    accepts: /^application\/x-www-form-urlencoded$/i,
    parse: parseFields,
  },
} as const satisfies Record<Exclude<BodyKind, 'none'>, BodyReader>;

/** The most fields of a form, and the deepest that JSON may be nested. */
const MOST_FIELDS = 100;
const DEEPEST = 32;

/** An object or an array: what is neither is nothing that any route reads. */
function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Without its cause: a parser quotes what it stumbled over, and bodies carry secrets.
    throw new DomainError('malformed_body', 'The body is not JSON.');
  }
  if (typeof value !== 'object' || value === null) {
    throw new DomainError('malformed_body', 'The body must be a JSON object or array.');
  }
  checkDepth(value);
  // Nothing but an escape can stand for a character that is none: the body was read as UTF-8, and JSON refuses a bare U+0000.
  if (text.includes('\\u') && !isText(JSON.stringify(value))) throw notText();
  return value;
}

/** Whoever walks a value by recursion, JSON.stringify among them, must come back. @throws DomainError malformed_body */
function checkDepth(value: object): void {
  let level: object[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === DEEPEST) {
      throw new DomainError('malformed_body', `The body is nested deeper than ${DEEPEST} levels.`);
    }
    level = level
      .flatMap((one) => Object.values(one) as unknown[])
      .filter((one) => typeof one === 'object' && one !== null);
  }
}

/**
 * A form, whose fields are strings and nothing more: a name with brackets is a name. A field that comes twice is refused
 * (RFC 6749 §3.1), since two readers might each believe another one.
 */
function parseForm(text: string): unknown {
  // Without a prototype: no name of a field means anything.
  const fields = Object.create(null) as Record<string, string>;
  for (const [name, value] of fieldsOf(text)) {
    if (name in fields)
      throw new DomainError('invalid_request', 'A field of the form occurs twice. Send it once.');
    fields[name] = value;
  }
  return fields;
}

/** A form whose fields are a string each, or a list of them where they come more than once. */
function parseFields(text: string): unknown {
  const fields = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of fieldsOf(text)) {
    const known = fields[name];
    if (known === undefined) fields[name] = value;
    else if (typeof known === 'string') fields[name] = [known, value];
    else known.push(value);
  }
  return fields;
}

/** @throws DomainError invalid_request or malformed_body */
function fieldsOf(text: string): URLSearchParams {
  const fields = new URLSearchParams(text);
  if (fields.size > MOST_FIELDS) {
    throw new DomainError('invalid_request', `A form may have at most ${MOST_FIELDS} fields.`);
  }
  if (text.includes('%00')) throw notText();
  return fields;
}

/**
 * Whether JSON is made of characters that a database takes: neither U+0000 nor half of a surrogate pair.
 *
 * @param json as JSON.stringify writes it: by number it escapes those, and control characters
 */
function isText(json: string): boolean {
  return !/\\u(?:0000|d[89a-f])/.test(json.replaceAll('\\\\', ''));
}

function notText(): DomainError {
  return new DomainError(
    'malformed_body',
    'The body contains characters that are not text. Remove them.',
  );
}
