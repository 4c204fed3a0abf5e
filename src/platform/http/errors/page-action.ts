import type { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';

/** The one thing that an error page offers to do next. */
export interface PageAction {
  readonly href: string;
  readonly text: string;
}

/** The facts that are known of the request that failed. */
export interface FailedRequest {
  readonly method: string | undefined;
  readonly baseUrl: string;
  /** Whether the request came from a session that a security key verified. */
  readonly isVerified: boolean;
}

const SIGN_IN: PageAction = { href: '/login', text: 'Sign in' };
const USE_KEY: PageAction = { href: '/login', text: 'Use your security key' };
const START: PageAction = { href: '/', text: 'Go to the start page' };
const KEYS: PageAction = { href: '/keys', text: 'See your keys' };
/** An empty reference is the address of the page itself (RFC 3986 §4.4). */
const AGAIN: PageAction = { href: '', text: 'Try again' };

const ACTIONS: Partial<Record<ErrorCode, PageAction>> = {
  unauthenticated: SIGN_IN,
  invalid_state: SIGN_IN,
  sign_in_failed: SIGN_IN,
  unknown_provider: SIGN_IN,
  upstream_unavailable: SIGN_IN,
  sign_in_refused: { href: '/login', text: 'Sign in with another account' },
  hardware_required: USE_KEY,
  insufficient_user_authentication: USE_KEY,
};

/** The errors that the same request may not meet a second time. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'internal',
  'rate_limited',
  'timed_out',
  'unavailable',
]);

/** Decides what an error page offers: the one step that leads on from this error. */
export function pageActionOf(error: DomainError, request: FailedRequest): PageAction {
  if (error.code === 'misdirected_request') {
    return { href: `${request.baseUrl}/`, text: `Go to ${new URL(request.baseUrl).host}` };
  }
  if (error.code === 'already_enrolled') return request.isVerified ? KEYS : USE_KEY;
  if (PASSING.has(error.code)) return request.method === 'GET' ? AGAIN : START;
  return ACTIONS[error.code] ?? START;
}
