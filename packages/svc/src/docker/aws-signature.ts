import { createHash, createHmac } from 'node:crypto';
import type { RoleCredentials } from '../aws/session/assume-role.js';

/** A request by POST to a service of AWS, without its signature. */
export interface UnsignedRequest {
  /** The URL of the service, whose path is `/`. */
  readonly url: string;
  /** The headers with their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The name of the service, and the region, for which the signature is valid. */
  readonly service: string;
  readonly region: string;
}

/**
 * Returns the headers of a request with its signature (AWS Signature Version 4).
 *
 * @param time milliseconds since 1970; AWS accepts a difference of 5 minutes
 */
export function signed(
  { url, headers, body, service, region }: UnsignedRequest,
  credentials: Pick<RoleCredentials, 'AccessKeyId' | 'SecretAccessKey'> & {
    readonly SessionToken?: string;
  },
  time: number,
): Record<string, string> {
  const stamp = `${new Date(time).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
  const date = stamp.slice(0, 8);
  const { SessionToken: token } = credentials;
  const all: Record<string, string> = {
    ...headers,
    host: new URL(url).host,
    'x-amz-date': stamp,
    ...(token === undefined ? {} : { 'x-amz-security-token': token }),
  };
  const names = Object.keys(all).toSorted();
  const lines = names.map((name) => `${name}:${all[name]?.trim()}\n`).join('');
  const canonical = ['POST', '/', '', lines, names.join(';'), sha256(body)].join('\n');
  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', stamp, scope, sha256(canonical)].join('\n');
  const key = [date, region, service, 'aws4_request'].reduce<Buffer | string>(
    (previous, part) => hmac(previous, part),
    `AWS4${credentials.SecretAccessKey}`,
  );
  const signature = hmac(key, text).toString('hex');
  const { host: _host, ...sent } = all; // the HTTP client writes the header `host` itself
  return {
    ...sent,
    authorization: `AWS4-HMAC-SHA256 Credential=${credentials.AccessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
