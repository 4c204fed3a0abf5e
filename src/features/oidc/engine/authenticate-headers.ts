import type { KoaContextWithOIDC } from 'oidc-provider';
import { RESOURCE_METADATA_PATH } from '#platform/http/errors/challenge.js';

/** A client that was refused as such is told a scheme by which it may authenticate (RFC 6749 §5.2, RFC 9110 §15.5.2). */
export function nameScheme(ctx: KoaContextWithOIDC): void {
  if (ctx.status !== 401 || ctx.response.headers['www-authenticate'] !== undefined) return;
  const { error = 'invalid_client' } = ctx.body as { error?: string };
  ctx.set('WWW-Authenticate', `Basic realm="${ctx.oidc.issuer}", error="${error}"`);
}

/**
 * Leaves one challenge of the library's, where it sends one a scheme, and lets it say where to read about this resource (RFC 9728
 * §5.1): that of the scheme which the request came with, Bearer where it came with none.
 */
export function challengeOnce(ctx: KoaContextWithOIDC, baseUrl: string): void {
  const challenges = [ctx.response.headers['www-authenticate'] ?? []].flat().map(String);
  if (challenges.length === 0) return;
  const isByProof = /^DPoP /i.test(ctx.get('authorization')) || ctx.get('dpop') !== '';
  const scheme = isByProof ? 'DPoP ' : 'Bearer ';
  const challenge = challenges.find((one) => one.startsWith(scheme)) ?? challenges[0];
  const metadata = `resource_metadata="${baseUrl}${RESOURCE_METADATA_PATH}"`;
  ctx.set('WWW-Authenticate', `${challenge}, ${metadata}`);
}
