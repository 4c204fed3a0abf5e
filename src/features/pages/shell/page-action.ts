import type { ErrorCode } from '#platform/errors/catalogue.js';
import type { PageAction, PageActionRule } from '#platform/http/errors/error-renderer.service.js';

const SIGN_IN: PageAction = { href: '/login', text: 'Sign in' };
const USE_KEY: PageAction = { href: '/login', text: 'Use your security key' };
const START: PageAction = { href: '/', text: 'Go to the start page' };
const GITHUB: PageAction = { href: '/admin/github', text: 'Back to GitHub' };
const KEYS: PageAction = { href: '/account/keys', text: 'See your keys' };
/**
 * The link that repeats the failed request. An empty `href` means the URL of the page itself (RFC
 * 3986 §4.4).
 */
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

/** The errors that can pass: the same request, if it is repeated later, may succeed. */
const PASSING: ReadonlySet<ErrorCode> = new Set([
  'internal',
  'rate_limited',
  'timed_out',
  'unavailable',
]);

/** Chooses the link that an error page offers as the next step. */
export const pageActionOf: PageActionRule = (error, request) => {
  if (error.code === 'misdirected_request') {
    return { href: `${request.baseUrl}/`, text: `Go to ${new URL(request.baseUrl).host}` };
  }
  if (error.code === 'already_enrolled') return request.isVerified ? KEYS : USE_KEY;
  if (request.isVerified && request.path === '/v1/credentials/github/callback') return GITHUB;
  if (PASSING.has(error.code)) return request.method === 'GET' ? AGAIN : START;
  return ACTIONS[error.code] ?? START;
};
