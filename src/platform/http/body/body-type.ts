import { Reflector } from '@nestjs/core';
import { DomainError } from '#platform/errors/domain-error.js';

/** How a body is read: a media type, or not at all. */
export interface BodyReader {
  /** As a client is told it. */
  readonly name: string;
  readonly accepts: RegExp;
  /** @throws DomainError malformed_body or invalid_request */
  readonly parse: (text: string) => unknown;
}

/** The types of body that routes read. */
export const BODY_READERS = {
  json: {
    name: 'application/json',
    accepts: /^application\/(?:[\w.-]+\+)?json$/i,
    parse: parseJson,
  },
  form: {
    name: 'application/x-www-form-urlencoded',
    accepts: /^application\/x-www-form-urlencoded$/i,
    parse: parseForm,
  },
} as const satisfies Record<string, BodyReader>;

/** States how a route, or a controller, reads its bodies: as JSON unless it says so, or not at all. */
export const BodyType = Reflector.createDecorator<keyof typeof BODY_READERS | 'none'>();

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
  return value;
}

/**
 * A form, whose fields are strings and nothing more: a name with brackets is a name. A field that comes twice is refused
 * (RFC 6749 §3.1), since two readers might each believe another one.
 */
function parseForm(text: string): unknown {
  // Without a prototype: no name of a field means anything.
  const fields = Object.create(null) as Record<string, string>;
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in fields)
      throw new DomainError('invalid_request', 'A field of the form comes twice.');
    fields[name] = value;
  }
  return fields;
}
