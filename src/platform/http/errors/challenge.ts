import { RouteTable } from '#platform/text/route-table.js';
import { CATALOGUE } from '#platform/errors/catalogue.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import { readable } from './oauth-json.js';

/** What OAuth protects: there a challenge says where to read about it (RFC 9728 §5.1). */
const PROTECTED_RESOURCES = new RouteTable([
  ['/v1/*', true],
  ['/api/*', true],
  ['/scim/*', true],
]);

/** Where the metadata of our protected resources is served (RFC 9728 §3). */
export const RESOURCE_METADATA_PATH = '/.well-known/oauth-protected-resource';

/**
 * The one challenge of an error, as `WWW-Authenticate` carries it (RFC 6750 §3, RFC 9449 §7.1). Whoever presented no token
 * is told the scheme and no error.
 *
 * @param path of the request
 */
export function challengeOf(error: DomainError, path: string, baseUrl: string): string {
  const { challenge } = error;
  const parameters = {
    ...(challenge && {
      error: CATALOGUE[error.code].oauth,
      error_description: readable(error.detail),
      scope: challenge.scope,
      max_age: challenge.maxAge,
      algs: challenge.algs?.join(' '),
    }),
    resource_metadata: PROTECTED_RESOURCES.of(path) && baseUrl + RESOURCE_METADATA_PATH,
  };
  const told = Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}="${value}"`);
  return [challenge?.scheme ?? 'Bearer', told.join(', ')].join(' ').trimEnd();
}
