import { CATALOGUE } from '#platform/errors/catalogue.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import { readable } from './error-formats.js';

/**
 * Returns the value of the header `WWW-Authenticate` for an error (RFC 6750 §3, RFC 9449 §7.1). For
 * an error without a challenge, such as that of a client that presented no token, it has only the
 * scheme and the URL of the metadata, and no error code.
 *
 * @param metadata the URL of the metadata of a protected resource (RFC 9728 §5.1); undefined if
 *   OAuth does not protect the route
 */
export function challengeOf(error: DomainError, metadata: string | undefined): string {
  const { challenge } = error;
  const parameters = {
    ...(challenge && {
      error: CATALOGUE[error.code].oauth,
      error_description: readable(error.detail),
      scope: challenge.scope,
      max_age: challenge.maxAge,
      algs: challenge.algs?.join(' '),
    }),
    resource_metadata: metadata,
  };
  const written = Object.entries(parameters)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}="${value}"`);
  return [challenge?.scheme ?? 'Bearer', written.join(', ')].join(' ').trimEnd();
}
