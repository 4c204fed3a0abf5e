import type { Signer } from './signer.js';

/**
 * Signs claims as a JWT in the compact form (RFC 7515 §7.1).
 *
 * @param kid the id of the signing key, for the header
 * @param typ the type of the token, for the header (RFC 8725 §3.11)
 */
export async function compactJws(
  { alg, sign }: Pick<Signer, 'alg' | 'sign'>,
  kid: string,
  claims: object,
  typ = 'JWT',
): Promise<string> {
  const signed = `${encode({ alg, kid, typ })}.${encode(claims)}`;
  const signature = await sign(Buffer.from(signed));
  return `${signed}.${signature.toString('base64url')}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
