import { CATALOGUE, type ErrorCode } from './catalogue.js';

/** What may go with an error: the cause is for the log alone, `retryAfter` (seconds) for the client. */
export interface DomainErrorOptions {
  readonly cause?: unknown;
  readonly retryAfter?: number;
}

/**
 * The one error that services and the domain throw. `detail` is written for the client: it says what is wrong and
 * what to do, and never carries a secret or anything internal; `cause` only reaches the log.
 */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly retryAfter: number | undefined;

  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    options: DomainErrorOptions = {},
  ) {
    super(`${code}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfter = options.retryAfter;
  }

  get status(): number {
    return CATALOGUE[this.code].status;
  }
}
