import { type JsonWebKey, type KeyObject, createHash, createPublicKey, verify } from 'node:crypto';
import type { SshCertificate } from './certificate.js';
import { SshFormatError, SshReader, sshStrings } from './wire.js';

/** The types of keys that an authority may have. */
const AUTHORITY_TYPES = ['ssh-ed25519', 'ecdsa-sha2-nistp256'];

/**
 * Returns true if the signature of a certificate is by the authority's key that the certificate
 * names. The caller must check that it trusts that key.
 *
 * @throws SshFormatError for an authority whose key is neither Ed25519 nor P-256 or is malformed,
 *   or a signature of another type
 */
export function isSignedByItsAuthority({ authority, signed, signature }: SshCertificate): boolean {
  const type = new SshReader(authority).name();
  if (!AUTHORITY_TYPES.includes(type)) {
    throw new SshFormatError(`its authority has a key of type ${type}`);
  }
  return isSignedByKey(authority, signed, signature);
}

/** The first bytes of a signature, and of the message that is signed (PROTOCOL.sshsig). */
const MAGIC = Buffer.from('SSHSIG');
const VERSION = 1;
const HASHES = ['sha256', 'sha512'];

/** Matches the text form of a signature: base64 in lines between a first and a last line. */
const ARMOR =
  /^-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]+)\r?\n-----END SSH SIGNATURE-----\r?\n?$/;

/** A signature of a file, as `ssh-keygen -Y sign` makes it. It was read, and not verified. */
export interface SshFileSignature {
  /**
   * The public key that the signature names, in the SSH wire encoding. It proves nothing until the
   * caller has compared it with a key that it knows.
   */
  readonly publicBlob: Buffer;
  /** The purpose for which the file was signed, such as `file`. */
  readonly namespace: string;
  readonly reserved: Buffer;
  readonly hash: string;
  readonly signature: Buffer;
}

/**
 * Reads a signature of `ssh-keygen -Y sign` (PROTOCOL.sshsig) in its text form.
 *
 * @throws SshFormatError for any other text
 */
export function readFileSignature(text: string): SshFileSignature {
  const encoded = (ARMOR.exec(text)?.[1] ?? '').replaceAll(/[\r\n]/g, '');
  const bytes = Buffer.from(encoded, 'base64');
  if (encoded === '' || bytes.toString('base64') !== encoded) {
    throw new SshFormatError('it is no signature of ssh-keygen');
  }
  const fields = new SshReader(bytes);
  if (!fields.bytes(MAGIC.length).equals(MAGIC) || fields.uint32() !== VERSION) {
    throw new SshFormatError('it is no signature of version 1');
  }
  const read: SshFileSignature = {
    publicBlob: fields.string(),
    namespace: fields.name(),
    reserved: fields.string(),
    hash: fields.name(),
    signature: fields.string(),
  };
  fields.end();
  if (!HASHES.includes(read.hash)) throw new SshFormatError('its hash is of another kind');
  return read;
}

/**
 * Returns true if a signature is of this content, by the key that the signature names. The caller
 * must check that it trusts that key, and that the namespace is the right one.
 *
 * @throws SshFormatError for a key that is neither Ed25519 nor P-256, or is malformed
 */
export function isSignatureOf(read: SshFileSignature, content: Uint8Array): boolean {
  const digest = createHash(read.hash).update(content).digest();
  const fields = sshStrings([
    Buffer.from(read.namespace, 'latin1'),
    read.reserved,
    read.hash,
    digest,
  ]);
  return isSignedByKey(read.publicBlob, Buffer.concat([MAGIC, fields]), read.signature);
}

/** The flag of an authenticator that says that a person was present (WebAuthn §6.1). */
const USER_PRESENT = 0x01;

/** Verifies the bytes of a signature by a public key, whose fields after the type are given. */
type Verifier = (fields: SshReader, signed: Buffer, bytes: Buffer) => boolean;

const PLAIN: Readonly<Record<string, Verifier>> = {
  'ssh-ed25519': (fields, signed, bytes) => {
    const key = ed25519Key(fields.string());
    return verify(null, signed, key, bytes);
  },
  'ecdsa-sha2-nistp256': (fields, signed, bytes) => {
    fields.string(); // the curve
    const key = { key: p256Key(fields.string()), dsaEncoding: 'ieee-p1363' } as const;
    return verify('sha256', signed, key, fixedSize(bytes));
  },
};

/** The types of keys in a security key, each with the plain type of the same algorithm. */
const IN_HARDWARE: Readonly<Record<string, string>> = {
  'sk-ssh-ed25519@openssh.com': 'ssh-ed25519',
  'sk-ecdsa-sha2-nistp256@openssh.com': 'ecdsa-sha2-nistp256',
};

/**
 * Returns true if a signature (RFC 4253 §6.6) is by a public key. A signature by a key in a
 * security key (PROTOCOL.u2f) counts only if a person was present.
 *
 * @param publicBlob the public key in the SSH wire encoding
 * @param signed the bytes that were signed
 * @throws SshFormatError for a key that is neither Ed25519 nor P-256 or is malformed, or a
 *   signature of another type
 */
function isSignedByKey(publicBlob: Buffer, signed: Buffer, signature: Buffer): boolean {
  const fields = new SshReader(publicBlob);
  const type = fields.name();
  const parts = new SshReader(signature);
  if (parts.name() !== type) throw new SshFormatError('its signature is of another type');
  const bytes = parts.string();
  const inHardware = Object.hasOwn(IN_HARDWARE, type) ? IN_HARDWARE[type] : undefined;
  const asserted = inHardware === undefined ? undefined : parts.bytes(5);
  parts.end();
  const verifier = verifierOf(inHardware ?? type);
  if (!asserted) return verifier(fields, signed, bytes);
  // The application is the last field of the key, after those that the verifier reads.
  const application = applicationOf(publicBlob);
  const message = Buffer.concat([sha256(application), asserted, sha256(signed)]);
  const isPresent = ((asserted[0] ?? 0) & USER_PRESENT) !== 0;
  return isPresent && verifier(fields, message, bytes);
}

function verifierOf(type: string): Verifier {
  const verifier = Object.hasOwn(PLAIN, type) ? PLAIN[type] : undefined;
  if (!verifier) throw new SshFormatError('its key is neither Ed25519 nor P-256');
  return verifier;
}

/** Reads the application of a public key in a security key, which is its last field. */
function applicationOf(publicBlob: Buffer): Buffer {
  const fields = new SshReader(publicBlob);
  const type = fields.name();
  if (type.startsWith('sk-ecdsa')) fields.string(); // the curve
  fields.string();
  const application = fields.string();
  fields.end();
  return application;
}

/** Converts the bytes of an Ed25519 public key (RFC 8709 §4) to a key of Node. */
function ed25519Key(point: Buffer): KeyObject {
  return keyOf({ kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') });
}

/** Converts an uncompressed point of P-256 (RFC 5656 §3.1) to a key of Node. */
function p256Key(point: Buffer): KeyObject {
  if (point[0] !== 4) throw new SshFormatError('its point is not in uncompressed form');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)];
  const jwk = { x: x.toString('base64url'), y: y.toString('base64url') };
  return keyOf({ kty: 'EC', crv: 'P-256', ...jwk });
}

/**
 * Makes a key of Node. Coordinates of another length, or of a point that is not on the curve, are
 * refused.
 */
function keyOf(key: JsonWebKey): KeyObject {
  try {
    return createPublicKey({ key, format: 'jwk' });
  } catch (cause) {
    throw new SshFormatError('its key is no point of its curve', { cause });
  }
}

/**
 * Converts an ECDSA signature (RFC 5656 §3.1.2) to its two integers with 32 bytes each, as Node
 * expects it.
 */
function fixedSize(signature: Buffer): Buffer {
  const integers = new SshReader(signature);
  const pair = [integers.mpint(), integers.mpint()];
  integers.end();
  if (pair.some(({ length }) => length > 32)) throw new SshFormatError('its signature is too long');
  return Buffer.concat(pair.map((part) => Buffer.concat([Buffer.alloc(32 - part.length), part])));
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
