import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { clientAddressOf } from '#platform/http/request/client-origin.js';
import { clientCertificateOf } from '#platform/http/request/client-certificate.js';
import { requestPath } from '#platform/http/contract/request-path.js';
import type { AuthRule } from '#platform/http/routing/route-policy.js';
import type { PresentedToken } from './access-policy.js';
import type { SessionCookies } from './session-cookies.service.js';

/**
 * Returns the secret of an `Authorization: Bearer` header, which may have any characters; undefined
 * if there is none.
 */
export function bearerSecret({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
}

/**
 * Returns the access token of a request; undefined if there is none. The session cookie is ignored
 * if the rule of the route excludes it.
 *
 * @throws DomainError unauthenticated for an Authorization header without a Bearer or DPoP token
 */
export function tokenFor(
  request: Request,
  { headerOnly }: AuthRule,
  cookies: SessionCookies,
): PresentedToken | undefined {
  return presentedToken(request, headerOnly === true ? undefined : cookies.token(request));
}

/**
 * Returns the access token of a request: from its Authorization header (RFC 6750 §2.1, RFC 9449
 * §7.1), or else from the session cookie. The header always wins, so that a client that sends a
 * token of its own never acts by a cookie.
 *
 * @param cookie the token of the session cookie, if there is one
 * @throws DomainError unauthenticated for an Authorization header of any scheme other than `Bearer`
 *   and `DPoP`
 */
export function presentedToken(
  request: Request,
  cookie: string | undefined,
): PresentedToken | undefined {
  const header = request.headers.authorization;
  if (header !== undefined) {
    const match = /^(bearer|dpop) +([\w.~+/-]+=*)$/i.exec(header);
    const [, scheme, token] = match ?? [];
    if (scheme === undefined || token === undefined) {
      throw new DomainError(
        'unauthenticated',
        'The Authorization header must carry a Bearer or DPoP access token.',
      );
    }
    return present(request, scheme.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer', token);
  }
  return cookie === undefined || cookie === '' ? undefined : present(request, 'cookie', cookie);
}

function present(
  request: Request,
  scheme: PresentedToken['scheme'],
  token: string,
): PresentedToken {
  const certificate = clientCertificateOf(request);
  return {
    scheme,
    token,
    proofs: request.headersDistinct['dpop'] ?? [],
    method: request.method,
    path: requestPath(request),
    certificate: certificate && hash('sha256', certificate.raw, 'base64url'),
    address: clientAddressOf(request),
  };
}
