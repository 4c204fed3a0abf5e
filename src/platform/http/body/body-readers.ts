import { DomainError } from '#platform/errors/domain-error.js';
import type { BodyKind } from '#platform/http/routing/route-policy.js';

/** The reader of one kind of body, such as JSON or a form. */
export interface BodyReader {
  /** The media type, as error texts name it. */
  readonly name: string;
  readonly accepts: RegExp;
  /**
   * Parses the text of a body.
   * @throws DomainError malformed_body if the text cannot be parsed or stored, or invalid_request
   *   if a form has too many fields or a repeated field
   */
  readonly parse: (text: string) => unknown;
}

const JSON_READER = {
  name: 'application/json',
  accepts: /^application\/(?:[\w.-]+\+)?json$/i,
  parse: parseJson,
} as const;

const FORM = {
  name: 'application/x-www-form-urlencoded',
  accepts: /^application\/x-www-form-urlencoded$/i,
} as const;

/** The reader of each kind of request body. */
export const BODY_READERS = {
  json: JSON_READER,
  /**
   * JSON of SCIM. It accepts the media types of `json`, among which are the two of RFC 7644 §3.1.
   * {@link parseScim} leaves it to the routes to refuse what the database cannot store.
   */
  scim: { ...JSON_READER, name: 'application/scim+json or application/json', parse: parseScim },
  form: { ...FORM, parse: parseForm },
  /**
   * A form of the OAuth endpoints, in which some parameters may come twice (RFC 8707 §2). The OAuth
   * library checks which ones.
   */
  fields: { ...FORM, parse: parseFields },
} as const satisfies Record<Exclude<BodyKind, 'none' | 'raw'>, BodyReader>;

/** The largest number of fields in a form, and the largest depth of nested JSON. */
const MOST_FIELDS = 100;
const DEEPEST = 32;

/**
 * Parses JSON.
 * @throws DomainError malformed_body, also for characters that the database cannot store
 */
function parseJson(text: string): unknown {
  const value = jsonIn(text);
  if (innermostOf(value).some((one) => Object.values(one).some(isNested))) {
    throw new DomainError('malformed_body', `The body is nested deeper than ${DEEPEST} levels.`);
  }
  // The body was decoded as valid UTF-8, and JSON refuses a bare U+0000. So only an escape (`\u…`)
  // can stand for a character that the database cannot store.
  if (text.includes('\\u') && !isText(JSON.stringify(value))) throw notText();
  return value;
}

/**
 * A text that the database cannot store. It stands for each value of a SCIM body that is nested too
 * deeply.
 */
const NOT_STORABLE = '\0';

/**
 * Parses the JSON of SCIM. Characters that the database cannot store are left in it, and a value
 * that is nested too deeply is replaced by such a character. The routes of SCIM refuse such
 * attributes, so that a write that ends access is still applied without them.
 *
 * @throws DomainError malformed_body for a text that is no JSON object or array
 */
function parseScim(text: string): unknown {
  const value = jsonIn(text);
  for (const one of innermostOf(value)) {
    for (const [name, inner] of Object.entries(one)) {
      if (isNested(inner)) one[name] = NOT_STORABLE;
    }
  }
  return value;
}

/**
 * Parses a text as JSON. It must be an object or an array, because no route reads any other value.
 * @throws DomainError malformed_body for any other text
 */
function jsonIn(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's error is left out of the log: its message quotes the body, which may contain
    // secrets.
    throw new DomainError('malformed_body', 'The body is not JSON.');
  }
  if (!isNested(value)) {
    throw new DomainError('malformed_body', 'The body must be a JSON object or array.');
  }
  return value;
}

/**
 * Finds the objects and arrays on the last level that a body may have, and adds them to a list.
 * What they contain must not be nested itself, so that recursive code such as JSON.stringify does
 * not overflow the stack.
 *
 * @param depth the level of `value`, from 1
 */
function innermostOf(
  value: object,
  depth = 1,
  found: Record<string, unknown>[] = [],
): Record<string, unknown>[] {
  if (depth === DEEPEST) found.push(value as Record<string, unknown>);
  else {
    for (const inner of Object.values(value) as unknown[]) {
      if (isNested(inner)) innermostOf(inner, depth + 1, found);
    }
  }
  return found;
}

/** Returns true for an object or an array. */
function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/**
 * Parses a form whose fields are plain strings: brackets in a name have no meaning. A field that
 * comes twice is refused (RFC 6749 §3.1), because two programs that read it might each take a
 * different value.
 */
function parseForm(text: string): unknown {
  // The object has no prototype, so that a field named like a member of every object (`__proto__`)
  // is a field like any other.
  const fields = Object.create(null) as Record<string, string>;
  for (const [name, value] of fieldsOf(text)) {
    if (name in fields)
      throw new DomainError('invalid_request', 'A field of the form occurs twice. Send it once.');
    fields[name] = value;
  }
  return fields;
}

/**
 * Parses a form whose fields are strings. If a name comes more than once, its field is a list of
 * strings.
 */
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

/**
 * Splits the text of a form into its fields.
 * @throws DomainError invalid_request for too many fields, or malformed_body for a character that
 *   the database cannot store
 */
function fieldsOf(text: string): URLSearchParams {
  const fields = new URLSearchParams(text);
  if (fields.size > MOST_FIELDS) {
    throw new DomainError('invalid_request', `A form may have at most ${MOST_FIELDS} fields.`);
  }
  if (text.includes('%00')) throw notText();
  return fields;
}

/**
 * Returns true if PostgreSQL can store all characters of a JSON text: it cannot store U+0000, or
 * one half of a surrogate pair.
 *
 * @param json a text that JSON.stringify wrote, because that writes such characters only as escapes
 *   (`\u0000`)
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
