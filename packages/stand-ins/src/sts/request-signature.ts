import { createHmac, hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { AwsError } from './xml.js';

/** The credentials of a role session, with which a request is signed. */
export interface SigningCredentials {
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly expiresAt: Date;
}

/** A request with its body, both of which the signature covers. */
export interface SignedRequest {
  readonly message: IncomingMessage;
  readonly body: Buffer;
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
const QUARTER_OF_AN_HOUR = 900_000;

/**
 * Verifies the signature of a request (AWS Signature Version 4).
 *
 * @param find returns the credentials of an access key id
 * @returns the credentials that signed the request
 * @throws AwsError MissingAuthenticationToken, InvalidClientTokenId, ExpiredToken or
 *   SignatureDoesNotMatch
 */
export function verifySignature<Credentials extends SigningCredentials>(
  request: SignedRequest,
  find: (accessKeyId: string) => Credentials | undefined,
  now: Date,
): Credentials {
  const { headers } = request.message;
  const match = AUTHORIZATION.exec(headers.authorization ?? '');
  if (!match)
    throw new AwsError(
      'MissingAuthenticationToken',
      'Request is missing Authentication Token',
      403,
    );
  const [, keyId = '', date = '', region = '', service = '', signed = '', signature = ''] = match;
  const credentials = find(keyId);
  const time = header(headers['x-amz-date']);
  if (!credentials || header(headers['x-amz-security-token']) !== credentials.sessionToken) {
    throw new AwsError(
      'InvalidClientTokenId',
      'The security token included in the request is invalid.',
      403,
    );
  }
  if (credentials.expiresAt <= now) {
    throw new AwsError(
      'ExpiredToken',
      'The security token included in the request is expired',
      403,
    );
  }
  const scope = `${date}/${region}/${service}/aws4_request`;
  const canonical = canonicalRequest(request, signed.split(';'));
  const text = ['AWS4-HMAC-SHA256', time, scope, hash('sha256', canonical)].join('\n');
  const key = [date, region, service, 'aws4_request'].reduce<Buffer>(
    (previous, part) => hmac(previous, part),
    Buffer.from(`AWS4${credentials.secretAccessKey}`),
  );
  const isFresh =
    Math.abs(timeOf(time) - now.getTime()) < QUARTER_OF_AN_HOUR && time.startsWith(date);
  if (!isFresh || !timingSafeEqual(hmac(key, text), Buffer.from(signature, 'hex'))) {
    throw new AwsError(
      'SignatureDoesNotMatch',
      'The request signature we calculated does not match the signature you provided.',
      403,
    );
  }
  return credentials;
}

function canonicalRequest(
  { message, body }: SignedRequest,
  signedHeaders: readonly string[],
): string {
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://stand-in');
  const query = [...searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .toSorted()
    .join('&');
  const lines = signedHeaders.map(
    (name) => `${name}:${header(message.headers[name]).trim().replaceAll(/ +/g, ' ')}\n`,
  );
  const digest = hash('sha256', body);
  const declared = message.headers['x-amz-content-sha256'] ?? digest;
  if (declared !== digest) {
    throw new AwsError(
      'XAmzContentSHA256Mismatch',
      'The body is not the one that was signed.',
      400,
    );
  }
  return [message.method, pathname, query, lines.join(''), signedHeaders.join(';'), digest].join(
    '\n',
  );
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/**
 * Converts a time such as `20261122T080000Z` to milliseconds since 1970; NaN for any other text.
 */
function timeOf(text: string): number {
  return Date.parse(
    text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  );
}

function header(value: string | string[] | undefined): string {
  return [value ?? ''].flat().join(',');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
