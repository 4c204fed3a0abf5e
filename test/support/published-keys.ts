import { createPublicKey, verify } from 'node:crypto';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import type { ReplicatedService } from './replicated-service.js';

/**
 * Verifies a JWT by the keys that the service publishes at this time. Throws if it does not verify.
 */
export async function verifyJwt(
  service: Pick<ReplicatedService, 'baseUrl' | 'client'>,
  jwt: string,
): Promise<void> {
  const { json } = await service.client().get('/oauth/jwks');
  await jwtVerify(jwt, createLocalJWKSet(json as JSONWebKeySet), { issuer: service.baseUrl });
}

/**
 * Verifies the signature of an SSH certificate by the keys that the service publishes at this time.
 * Throws if it does not verify.
 */
export async function verifyCertificate(
  service: Pick<ReplicatedService, 'client'>,
  certificate: string,
): Promise<void> {
  const { text } = await service.client().get('/v1/credentials/ssh/ca');
  const { signed, authority, signature } = partsOf(certificate);
  const published = text.split('\n').map((line) => line.split(' ')[1]);
  if (!published.includes(authority.toString('base64'))) {
    throw new Error('the key of a certificate is not published');
  }
  if (!isSignedBy(authority, signed, signature)) throw new Error('a certificate does not verify');
}

/**
 * Returns the parts of an SSH certificate that its verification needs: the signed bytes, the key of
 * the authority, and the signature (PROTOCOL.certkeys).
 */
function partsOf(certificate: string) {
  const blob = Buffer.from(certificate.split(' ')[1] ?? '', 'base64');
  const reader = new Reader(blob);
  const type = reader.string().toString();
  const ofKey = type.startsWith('ssh-ed25519') ? 1 : 2; // an RSA or ECDSA key has two parts
  for (let skipped = 0; skipped < 1 + ofKey; skipped += 1) reader.string();
  reader.skip(12); // serial and kind
  reader.string(); // key id
  reader.string(); // principals
  reader.skip(16); // validity
  for (let skipped = 0; skipped < 3; skipped += 1) reader.string(); // options, extensions, reserved
  const authority = reader.string();
  const signed = blob.subarray(0, reader.offset);
  return { signed, authority, signature: reader.string() };
}

function isSignedBy(authority: Buffer, signed: Buffer, signature: Buffer): boolean {
  const key = new Reader(authority);
  const value = new Reader(signature);
  const [type] = [key.string().toString(), value.string()];
  if (type === 'ssh-ed25519') {
    const x = key.string().toString('base64url');
    const jwk = { kty: 'OKP', crv: 'Ed25519', x };
    return verify(null, signed, createPublicKey({ key: jwk, format: 'jwk' }), value.string());
  }
  key.string(); // the curve's name
  const point = key.string();
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((n) => n.toString('base64url'));
  const jwk = { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' };
  const numbers = new Reader(value.string());
  const raw = Buffer.concat([fixed(numbers.string()), fixed(numbers.string())]);
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' });
  return verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, raw);
}

/** Converts an SSH integer (mpint), which may be shorter or begin with a zero byte, to 32 bytes. */
function fixed(number: Buffer): Buffer {
  return Buffer.concat([Buffer.alloc(32), number]).subarray(-32);
}

class Reader {
  offset = 0;

  constructor(private readonly bytes: Buffer) {}

  string(): Buffer {
    const start = this.offset + 4;
    this.offset = start + this.bytes.readUInt32BE(this.offset);
    return this.bytes.subarray(start, this.offset);
  }

  skip(length: number): void {
    this.offset += length;
  }
}
