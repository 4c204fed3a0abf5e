import { errors } from 'jose';
import * as client from 'openid-client';
import { DomainError } from '#platform/errors/domain-error.js';
import { toSingleLine } from '#platform/text/single-line.js';

/**
 * The error codes of openid-client for a response of the provider that arrived whole but failed
 * verification.
 */
const UNVERIFIED = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
  'OAUTH_UNSUPPORTED_OPERATION',
]);
/** The error codes in a redirect that report a fault of the provider itself (RFC 6749 §4.1.2.1). */
const PROVIDER_ERRORS = new Set(['server_error', 'temporarily_unavailable']);

/**
 * Returns the error for the client from an error of a library. Its text contains nothing from the
 * provider or the browser. Faults of the provider (network, 5xx, refused client credentials) become
 * `upstream_unavailable`.
 *
 * @returns the error to throw; an error that no library threw is returned unchanged
 */
export function signInFailure(error: unknown): unknown {
  const cause = error;
  if (error instanceof client.AuthorizationResponseError) {
    if (PROVIDER_ERRORS.has(error.error)) return unavailable(cause);
    const denied = error.error === 'access_denied';
    return failed(denied ? 'Access was denied there.' : 'It answered with an error.', cause);
  }
  if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') {
    return failed('It no longer knows this sign-in. Start again.', cause);
  }
  if (error instanceof client.ClientError && UNVERIFIED.has(error.code ?? '')) {
    return unverified(cause);
  }
  if (error instanceof errors.JOSEError) return unverified(cause);
  const isFault =
    error instanceof client.ClientError ||
    error instanceof client.ResponseBodyError ||
    error instanceof client.WWWAuthenticateChallengeError;
  return isFault ? unavailable(cause) : error;
}

function failed(what: string, cause: unknown): DomainError {
  const detail = `The identity provider did not sign you in. ${what}`;
  return new DomainError('sign_in_failed', detail, { cause });
}

/**
 * Returns the error for a response of the identity provider that arrived whole but failed
 * verification.
 */
export function unverified(cause: unknown): DomainError {
  return failed('Its answer could not be verified.', cause);
}

/** Returns the error for a fault of the provider or of the network. */
export function unavailable(cause: unknown): DomainError {
  const detail = 'The identity provider cannot be used at the moment. Try again later.';
  return new DomainError('upstream_unavailable', detail, { cause });
}

/** The most characters of a text from the provider that the log shows. */
const LONGEST_TEXT = 200;

/**
 * The facts of a failed sign-in for the log. Each text from the provider is cut to one short line,
 * so that it cannot forge log lines.
 */
export interface FailureReport {
  /** The provider's `error` and `error_description` (RFC 6749 §4.1.2.1, §5.2). */
  readonly error?: string;
  readonly errorDescription?: string;
  /** The reason why the response failed verification or did not arrive. */
  readonly reason?: string;
}

/** Returns the facts of a failed sign-in for the log. A page never shows them. */
export function reportOf(failure: unknown): FailureReport {
  const cause = failure instanceof DomainError ? (failure.cause ?? failure) : failure;
  if (
    cause instanceof client.AuthorizationResponseError ||
    cause instanceof client.ResponseBodyError
  ) {
    return {
      ...textOf('error', cause.error),
      ...textOf('errorDescription', cause.error_description),
    };
  }
  if (cause instanceof client.WWWAuthenticateChallengeError) {
    const { error, error_description: description } = cause.cause[0]?.parameters ?? {};
    return {
      ...textOf('error', error),
      ...textOf('errorDescription', description),
      ...textOf('reason', cause.message),
    };
  }
  if (cause instanceof DomainError) return textOf('reason', cause.detail);
  if (!(cause instanceof Error)) return {};
  const below = cause.cause instanceof Error ? `: ${cause.cause.message}` : '';
  return textOf('reason', `${cause.message}${below}`);
}

function textOf(name: keyof FailureReport, text: unknown): FailureReport {
  const clean = typeof text === 'string' ? toSingleLine(text, LONGEST_TEXT) : null;
  return clean === null ? {} : { [name]: clean };
}
