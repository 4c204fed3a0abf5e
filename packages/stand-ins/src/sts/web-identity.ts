import { createPublicKey, verify } from 'node:crypto';
import { z } from 'zod';
import { AwsError } from './xml.js';

/**
 * An OpenID Connect provider that is registered in IAM: its issuer URL, and the audiences of its
 * tokens.
 */
export interface IamProvider {
  readonly issuer: string;
  readonly audiences: readonly string[];
}

const HEADER = z.object({ alg: z.string(), kid: z.string() });
const CLAIMS = z.looseObject({
  iss: z.string(),
  sub: z.string().min(1).max(255),
  aud: z.union([z.string(), z.array(z.string())]),
  azp: z.string().optional(),
  exp: z.int(),
  iat: z.int(),
  nbf: z.int().optional(),
});
const DISCOVERY = z.object({ issuer: z.string(), jwks_uri: z.string() });
const JWKS = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string() })) });

/** The claims of a verified token, with the audience that was accepted. */
export type WebIdentity = z.output<typeof CLAIMS> & { readonly audience: string };

/** The seconds that the clocks of an issuer and of AWS may differ. */
const CLOCK_SKEW = 300;
const LONGEST_TOKEN = 20_000;
const PUBLISHED_IN_TIME = 5000;

/**
 * Verifies a token as STS does for an OpenID Connect provider of IAM. It checks the issuer, the
 * algorithm, the signature by the key that the issuer publishes under the `kid`, the audience and
 * the times. Certificate thumbprints are not used.
 *
 * @param now seconds since 1970
 * @throws AwsError InvalidIdentityToken, ExpiredTokenException or IDPCommunicationError
 */
export async function verifyWebIdentity(
  token: string,
  provider: IamProvider,
  now: number,
): Promise<WebIdentity> {
  const parts = token.length <= LONGEST_TOKEN ? token.split('.') : [];
  const [head = '', body = '', signature = ''] = parts;
  const header = partOf(HEADER, head);
  const claims = partOf(CLAIMS, body);
  if (parts.length !== 3 || !header || !claims) {
    throw invalid(
      'The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)',
    );
  }
  if (claims.iss !== provider.issuer) {
    throw invalid(`No OpenIDConnect provider found in your account for ${claims.iss}`);
  }
  if (header.alg !== 'RS256') throw invalid('The token must be signed by RS256');
  const key = await keyOf(provider, header.kid);
  const signed = Buffer.from(`${head}.${body}`);
  if (!verify('sha256', signed, key, Buffer.from(signature, 'base64url'))) {
    throw invalid('Token signature invalid');
  }
  return { ...claims, audience: checked(claims, provider, now) };
}

/**
 * Checks the audience and the times of a token, and returns the audience. If the token has the
 * claim `azp`, its value counts as the audience.
 */
function checked(
  { aud, azp, exp, iat, nbf }: z.output<typeof CLAIMS>,
  { audiences }: IamProvider,
  now: number,
): string {
  const audience = (azp === undefined ? [aud].flat() : [azp]).find((each) =>
    audiences.includes(each),
  );
  if (audience === undefined) throw invalid('Incorrect token audience');
  if (exp <= now) {
    throw new AwsError(
      'ExpiredTokenException',
      `Token expired: current date/time ${now} must be before the expiration date/time ${exp}`,
    );
  }
  if (iat > now + CLOCK_SKEW || (nbf ?? 0) > now + CLOCK_SKEW) {
    throw invalid('Token is not yet valid');
  }
  return audience;
}

/**
 * Parses a part of a JWT by a schema; undefined if it is not the base64url of JSON that fits the
 * schema.
 */
function partOf<Schema extends z.ZodType>(schema: Schema, part: string) {
  try {
    return schema.safeParse(JSON.parse(Buffer.from(part, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
}

/**
 * Fetches the discovery document and the JWK Set of the issuer, and returns the RSA key with the id
 * `kid`.
 */
async function keyOf({ issuer }: IamProvider, kid: string) {
  const discovery = await fetched(`${issuer}/.well-known/openid-configuration`, DISCOVERY);
  if (discovery.issuer !== issuer) throw unreachable();
  const { keys } = await fetched(discovery.jwks_uri, JWKS);
  const jwk = keys.find((each) => each.kid === kid && each.kty === 'RSA');
  if (jwk === undefined) {
    throw invalid("Couldn't retrieve verification key from your identity provider");
  }
  return createPublicKey({ key: jwk, format: 'jwk' });
}

async function fetched<Schema extends z.ZodType>(url: string, schema: Schema) {
  try {
    const response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(PUBLISHED_IN_TIME),
    });
    if (response.status !== 200) throw unreachable();
    return schema.parse(await response.json());
  } catch {
    throw unreachable();
  }
}

function invalid(message: string): AwsError {
  return new AwsError('InvalidIdentityToken', message);
}

function unreachable(): AwsError {
  return new AwsError('IDPCommunicationError', 'Could not communicate with the identity provider');
}
