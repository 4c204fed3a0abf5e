import type { KoaContextWithOIDC, Provider } from 'oidc-provider';
import { ROUTES } from './configuration.js';

/** The addresses of the token endpoint: the published one, and that of the listener a request came to (RFC 8705 §5). */
export function tokenEndpointsOf(ctx: KoaContextWithOIDC, baseUrl: string): string[] {
  return [`${baseUrl}${ROUTES.token}`, ctx.oidc.urlFor('token')];
}

/** Lets an assertion name the published token endpoint on every listener: the library knows only the one that was called. */
export function expectTokenEndpoint({ OIDCContext }: Provider, baseUrl: string): void {
  const context = OIDCContext.prototype as { clientJwtAuthExpectedAudience: Audiences };
  const { clientJwtAuthExpectedAudience: expected } = context;
  context.clientJwtAuthExpectedAudience = function (this: object) {
    return expected.call(this).add(`${baseUrl}${ROUTES.token}`);
  };
}

/** The audiences that the library accepts of a request. */
type Audiences = (this: object) => Set<string>;
