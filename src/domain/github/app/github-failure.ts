import { DomainError } from '#platform/errors/domain-error.js';
import type { UpstreamAnswer } from '#platform/outbound/upstream-http.js';

/**
 * The error for a response of GitHub with a status other than 2xx. It keeps neither the text of the
 * response nor the headers of the request, because errors are logged and both can contain secrets.
 */
export class GitHubFailure extends Error {
  override readonly name = 'GitHubFailure';

  /**
   * @param reason the cause of the failure, as far as the headers and the text of the response show
   *   it
   * @param retryAfter the seconds after which to try again; undefined if GitHub did not state them
   */
  constructor(
    readonly request: string,
    readonly status: number,
    readonly reason: FailureReason,
    readonly retryAfter?: number,
  ) {
    super(`GitHub answered ${status} to ${request} (${reason})`);
  }
}

/**
 * The causes of a {@link GitHubFailure} that the service must distinguish, because the client gets
 * a different error for each.
 */
export type FailureReason = 'rate-limited' | 'suspended' | 'repositories' | 'other';

/**
 * The longest wait, in seconds, that `retryAfter` can have. It is an hour, because every rate limit
 * of GitHub ends by then.
 */
const LONGEST_WAIT = 3600;

/**
 * Returns the error for a response of GitHub with a status other than 2xx. It reads the reason from
 * the headers and the body, because GitHub answers 403 both for a suspended installation and for a
 * rate limit.
 *
 * @param now milliseconds since 1970
 */
export function failureOf(
  request: string,
  { status, headers }: Pick<UpstreamAnswer, 'status' | 'headers'>,
  body: string,
  now: number,
): GitHubFailure {
  const isLimited =
    status === 429 ||
    (status === 403 &&
      (headers.has('retry-after') ||
        headers.get('x-ratelimit-remaining') === '0' ||
        /rate limit/i.test(body)));
  if (isLimited) {
    return new GitHubFailure(request, status, 'rate-limited', waitOf(headers, now));
  }
  if (status === 403 && /suspended/i.test(body)) {
    return new GitHubFailure(request, status, 'suspended');
  }
  const isOfRepositories = status === 422 && /repositor/i.test(body);
  return new GitHubFailure(request, status, isOfRepositories ? 'repositories' : 'other');
}

/**
 * Reads from the headers how many seconds to wait: the value of `retry-after`, or the time until
 * the rate limit ends. Returns undefined if neither is a number.
 */
function waitOf(headers: UpstreamAnswer['headers'], now: number): number | undefined {
  const after = Number(headers.get('retry-after') ?? Number.NaN);
  const reset = Number(headers.get('x-ratelimit-reset') ?? Number.NaN) - Math.floor(now / 1000);
  const wait = Number.isFinite(after) ? after : reset;
  return Number.isFinite(wait) ? Math.min(Math.max(1, Math.ceil(wait)), LONGEST_WAIT) : undefined;
}

/**
 * Returns the error for the client if GitHub could not be reached, limits the requests, or sent an
 * unexpected response. The cause is only for the log.
 */
export function githubUnavailable(cause: unknown): DomainError {
  const retryAfter = cause instanceof GitHubFailure ? cause.retryAfter : undefined;
  const isLimited = cause instanceof GitHubFailure && cause.reason === 'rate-limited';
  return new DomainError(
    'github_unavailable',
    isLimited
      ? 'GitHub limits the requests of this service at the moment. Try again later.'
      : 'GitHub does not answer as it should. Try again later.',
    { cause, ...(retryAfter === undefined ? {} : { retryAfter }) },
  );
}

/** Returns the error for the client if GitHub did not issue an installation token. */
export function mintingRefused(cause: unknown): DomainError {
  if (!(cause instanceof GitHubFailure) || cause.reason === 'rate-limited') {
    return githubUnavailable(cause);
  }
  const { status, reason } = cause;
  if (reason === 'suspended') return githubSuspended(cause);
  if (status === 404) {
    const detail = 'GitHub knows no such installation any more. An admin must link it again.';
    return new DomainError('not_found', detail, { cause });
  }
  if (reason === 'repositories') {
    const detail = 'The installation has no access to one of these repositories.';
    return new DomainError('not_found', detail, { cause });
  }
  if (status === 422) {
    const detail =
      'The GitHub App does not have these permissions. An owner of the App must grant them.';
    return new DomainError('permission_not_allowed', detail, { cause });
  }
  return githubUnavailable(cause);
}

/** Returns the error for an installation that GitHub or its owner has suspended. */
export function githubSuspended(cause?: unknown): DomainError {
  const detail = 'This installation is suspended at GitHub. An owner of the account can resume it.';
  return new DomainError('github_suspended', detail, { cause });
}
