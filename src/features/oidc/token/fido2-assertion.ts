import { CATALOGUE } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { readable } from '#platform/http/errors/error-formats.js';
import { errors } from '../protocol/library.js';

/**
 * The largest number of characters of an assertion. An AuthenticationResponseJSON has a few hundred
 * bytes.
 */
const LONGEST_ASSERTION = 16_384;

/**
 * Decodes the assertion of a security key, which is JSON in base64url. The ceremony, which verifies
 * the assertion, checks its shape later.
 * @throws DomainError assertion_rejected for any other text, or a text that is too long
 */
export function readAssertion(text: string): unknown {
  try {
    if (text.length > LONGEST_ASSERTION) throw new Error('too long');
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
  } catch {
    throw rejected('The assertion must be the base64url of an AuthenticationResponseJSON.');
  }
}

/** Makes the error for a wrong assertion of a security key. */
export function rejected(detail: string): DomainError {
  return new DomainError('assertion_rejected', detail);
}

/**
 * Makes an `invalid_grant` error whose response contains the detail. The OAuth library alone would
 * only log the detail.
 */
export function invalidGrant(detail: string): errors.InvalidGrant {
  return Object.assign(new errors.InvalidGrant(detail), { error_description: readable(detail) });
}

/**
 * Converts the refusal of a login to `invalid_grant` (RFC 6749 §5.2). A fault of the server is
 * thrown unchanged.
 */
export async function asInvalidGrant<T>(attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (!(error instanceof DomainError) || error.status >= 500) throw error;
    if (error.code === 'sign_in_required') throw signInRequired(error);
    throw invalidGrant(error.detail);
  }
}

/**
 * Makes the error of a login that is possible only in a browser. Its code differs from that of a
 * wrong assertion, so that a client can tell the two apart.
 */
function signInRequired({ code, detail }: DomainError): errors.InvalidGrant {
  const { oauth } = CATALOGUE[code];
  return Object.assign(invalidGrant(detail), { error: oauth, message: oauth });
}
