import { CATALOGUE, type ErrorCode } from './catalogue.js';

/** What a protected resource says about the token it did not accept (RFC 6750 §3, RFC 9449 §7.1). */
export interface Challenge {
  /** The scheme under which a token must come. */
  readonly scheme: 'Bearer' | 'DPoP';
  /** The scope that would do. */
  readonly scope?: string;
  /** Seconds that the last assertion may lie back (RFC 9470 §3). */
  readonly maxAge?: number;
  /** The algorithms that a DPoP proof may be signed with. */
  readonly algs?: readonly string[];
}

/** What may go with an error: the cause is for the log alone, `retryAfter` (seconds) and the challenge for the client. */
export interface DomainErrorOptions {
  readonly cause?: unknown;
  readonly retryAfter?: number;
  readonly challenge?: Challenge;
}

/**
 * The one error that services and the domain throw. `detail` is written for the client: it says what is wrong and
 * what to do, and never carries a secret or anything internal; `cause` only reaches the log.
 */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly retryAfter: number | undefined;
  readonly challenge: Challenge | undefined;

  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    options: DomainErrorOptions = {},
  ) {
    super(`${code}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfter = options.retryAfter;
    this.challenge = options.challenge;
  }

  get status(): number {
    return CATALOGUE[this.code].status;
  }
}
