import { DomainError } from '#platform/errors/domain-error.js';
import { RouteTable } from '#platform/text/route-table.js';

const KIB = 1024;

/** The largest body where no row says otherwise, in bytes. */
const ELSEWHERE = 256 * KIB;

/** The largest bodies, in bytes. */
const LIMITS = new RouteTable<number>([
  ['/v1/credentials/*', 8 * KIB],

  ['/enroll/webauthn/*', 32 * KIB],
  ['/login/webauthn/*', 32 * KIB],
  ['/v1/keys/register/*', 32 * KIB],

  ['/scim/v2/*', 64 * KIB],
  ['/oauth/authorize', 64 * KIB],
  ['/saml/acs', 64 * KIB],

  ['/api/webhooks/github', 1024 * KIB],
]);

/**
 * How large a body may be.
 *
 * @param path of a request, or a route's template
 * @returns bytes
 */
export function bodyLimitOf(path: string): number {
  return LIMITS.of(path) ?? ELSEWHERE;
}

/** The refusal of a body that is larger than so many bytes. */
export function tooLarge(limit: number): DomainError {
  return new DomainError('body_too_large', `The body may have at most ${limit} bytes here.`);
}
