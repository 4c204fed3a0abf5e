import { createPublicKey, verify } from 'node:crypto';
import { SshReader } from '#domain/ssh/openssh/wire.js';

/** The fields of an OpenSSH user certificate of an Ed25519 key (OpenSSH PROTOCOL.certkeys). */
export interface ReadCertificate {
  readonly type: string;
  /** Decimal. */
  readonly serial: string;
  readonly keyId: string;
  readonly principals: readonly string[];
  readonly validAfter: Date;
  readonly validBefore: Date;
  readonly extensions: readonly string[];
  /** The public key of the signing authority, as the base64 of its line. */
  readonly authority: string;
}

const USER = 1;

/**
 * Reads a certificate and verifies its signature, with code that the service does not use to write one.
 *
 * @param line `type base64`, as in a `-cert.pub` file
 * @throws SshFormatError or Error for text that is not a user certificate, or has another signature than its authority's
 */
export function readCertificate(line: string): ReadCertificate {
  const [type = '', encoded = ''] = line.split(' ');
  const whole = Buffer.from(encoded, 'base64');
  const fields = new SshReader(whole);
  if (fields.name() !== type) throw new Error('the certificate is not of the type its line says');
  fields.string(); // nonce
  fields.string(); // the subject's point
  const serial = fields.bytes(8).readBigUInt64BE().toString();
  if (fields.uint32() !== USER) throw new Error('it is not a certificate of a user');
  const keyId = fields.string().toString();
  const principals = strings(fields.string());
  const [validAfter, validBefore] = [time(fields), time(fields)];
  fields.string(); // critical options
  const extensions = strings(fields.string()).filter((_, index) => index % 2 === 0); // every second string is a value
  fields.string(); // reserved
  const authority = fields.string();
  const signedLength = whole.length - fields.rest().length;
  const [, signature] = splitStrings(new SshReader(whole.subarray(signedLength)).string());
  if (
    !verify(null, whole.subarray(0, signedLength), publicKey(authority), signature ?? Buffer.of())
  ) {
    throw new Error('the signature is not that of the authority it names');
  }
  return {
    type,
    serial,
    keyId,
    principals,
    validAfter,
    validBefore,
    extensions,
    authority: authority.toString('base64'),
  };
}

function time(fields: SshReader): Date {
  return new Date(Number(fields.bytes(8).readBigUInt64BE()) * 1000);
}

function strings(list: Buffer): string[] {
  return splitStrings(list).map(String);
}

function splitStrings(list: Buffer): Buffer[] {
  const reader = new SshReader(list);
  const found: Buffer[] = [];
  let left = list.length;
  while (left > 0) {
    const next = reader.string();
    found.push(next);
    left -= 4 + next.length;
  }
  return found;
}

/** The key of `string "ssh-ed25519", string point` (RFC 8709 §4). */
function publicKey(blob: Buffer) {
  const x = blob.subarray(-32).toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}
