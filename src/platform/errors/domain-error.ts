import { CATALOGUE, type ErrorCode } from './catalogue.js';

/**
 * The challenge (`WWW-Authenticate`) with which a route refuses a token (RFC 6750 §3, RFC 9449
 * §7.1).
 */
export interface Challenge {
  /** The required scheme of the token. */
  readonly scheme: 'Bearer' | 'DPoP';
  /** The scope that the token lacks. */
  readonly scope?: string;
  /**
   * The greatest age, in seconds, at which the route accepts the last touch of the security key
   * (RFC 9470 §3).
   */
  readonly maxAge?: number;
  /** The algorithms that a DPoP proof may use. */
  readonly algs?: readonly string[];
}

/**
 * Additions to an error. The cause is only logged. The client gets the challenge, the cursor, and
 * `retryAfter` in seconds.
 */
export interface DomainErrorOptions {
  readonly cause?: unknown;
  readonly retryAfter?: number;
  readonly challenge?: Challenge;
  /** The cursor with which a client that reads the feed of audit events goes on after the error. */
  readonly cursor?: string;
}

/**
 * The error by which services and the domain refuse a request. `detail` is for the client: it
 * states the problem and the remedy, and contains no secret and nothing internal. `cause` is only
 * logged.
 */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly retryAfter: number | undefined;
  readonly challenge: Challenge | undefined;
  readonly cursor: string | undefined;

  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    options: DomainErrorOptions = {},
  ) {
    super(`${code}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfter = options.retryAfter;
    this.challenge = options.challenge;
    this.cursor = options.cursor;
  }

  get status(): number {
    return CATALOGUE[this.code].status;
  }
}
