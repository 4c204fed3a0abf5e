import { type KeyObject, createECDH, createPrivateKey } from 'node:crypto';
import { SshFormatError, SshReader, sshString, sshStrings, uint32 } from './wire.js';

const MAGIC = Buffer.from('openssh-key-v1\0'); // OpenSSH PROTOCOL.key
const ARMOR =
  /-----BEGIN OPENSSH PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END OPENSSH PRIVATE KEY-----/;
const P256 = 'prime256v1';
/**
 * The check number of a private key file. It occurs twice in the encrypted section, so that a
 * program sees if the passphrase was right. This file has no passphrase, so any number will do.
 */
const CHECK = uint32(0);
// The private section of the file is padded to a multiple of 8 bytes, even if no cipher is used.
const NO_CIPHER_BLOCK = 8;

/**
 * Parses an unencrypted Ed25519 or P-256 private key, in OpenSSH's own format or as PKCS#8 PEM.
 * @throws SshFormatError that names the fault, and never contains a part of the key
 */
export function readPrivateKey(text: string): KeyObject {
  if (text.includes('BEGIN OPENSSH PRIVATE KEY')) return readOpenSsh(text);
  if (text.includes('BEGIN ENCRYPTED PRIVATE KEY')) throw encrypted();
  if (text.includes('BEGIN PRIVATE KEY')) return readPkcs8(text);
  if (/^(ssh|ecdsa|sk)-|BEGIN PUBLIC KEY/.test(text.trimStart())) {
    throw new SshFormatError('it is a public key, and the private key is needed');
  }
  throw new SshFormatError('it is neither an OpenSSH nor a PKCS#8 private key in PEM form');
}

function readPkcs8(text: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(text);
  } catch {
    throw new SshFormatError('its PKCS#8 encoding is damaged');
  }
  if (!isAuthorityKey(key)) throw wrongType(key.asymmetricKeyType ?? 'unknown');
  return key;
}

/**
 * Returns true for a key of a type that a certificate authority may have: Ed25519 or P-256. AWS KMS
 * offers both types, so that the key can be in KMS, too.
 */
export function isAuthorityKey(key: KeyObject): boolean {
  if (key.asymmetricKeyType === 'ec') return key.asymmetricKeyDetails?.namedCurve === P256;
  return key.asymmetricKeyType === 'ed25519';
}

function readOpenSsh(text: string): KeyObject {
  const armored = ARMOR.exec(text)?.[1];
  if (armored === undefined) throw new SshFormatError('its PEM lines are damaged');
  const file = new SshReader(Buffer.from(armored, 'base64'));
  if (!file.bytes(MAGIC.length).equals(MAGIC)) {
    throw new SshFormatError('it does not begin as an OpenSSH key');
  }
  if (file.name() !== 'none') throw encrypted();
  file.string(); // key derivation function
  file.string(); // the options of that function; without a cipher, neither field is used
  if (file.uint32() !== 1) throw new SshFormatError('it does not hold exactly one key');
  const publicBlob = file.string();
  const secrets = new SshReader(file.string());
  file.end();

  if (secrets.uint32() !== secrets.uint32()) throw new SshFormatError('its check numbers differ');
  const key = readSecrets(secrets);
  if (!publicKeyBlob(key).equals(publicBlob)) throw halvesDiffer();
  return key;
}

/** Parses the private section of an OpenSSH key file (OpenSSH PROTOCOL.key) up to its comment. */
function readSecrets(secrets: SshReader): KeyObject {
  const type = secrets.name();
  if (type === 'ssh-ed25519') {
    const point = secrets.string();
    const scalar = secrets.string(); // the seed, and the point once more
    if (!scalar.subarray(32).equals(point)) throw halvesDiffer();
    const key = keyOfSeed(scalar.subarray(0, 32), point);
    if (!half(key, 'x').equals(point)) throw halvesDiffer();
    return key;
  }
  if (type === 'ecdsa-sha2-nistp256') {
    if (secrets.name() !== 'nistp256') throw wrongType('ecdsa of another curve');
    const point = secrets.string();
    return keyOfScalar(secrets.mpint(), point);
  }
  throw wrongType(type);
}

function keyOfSeed(seed: Buffer, point: Buffer): KeyObject {
  const [d, x] = [seed.toString('base64url'), point.toString('base64url')];
  try {
    return createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' });
  } catch {
    throw new SshFormatError('its numbers do not have the length of an Ed25519 key');
  }
}

/** Makes a P-256 key from its private number, and checks that the public point belongs to it. */
function keyOfScalar(scalar: Buffer, point: Buffer): KeyObject {
  const pair = createECDH(P256);
  try {
    pair.setPrivateKey(scalar);
  } catch {
    throw new SshFormatError('its number is not that of a P-256 key');
  }
  if (!pair.getPublicKey().equals(point)) throw halvesDiffer();
  const d = Buffer.concat([Buffer.alloc(32 - scalar.length), scalar]);
  const [x, y] = [point.subarray(1, 33), point.subarray(33)];
  const jwk = { d, x, y };
  const encoded = Object.entries(jwk).map(([name, bytes]) => [name, bytes.toString('base64url')]);
  return createPrivateKey({
    key: { kty: 'EC', crv: 'P-256', ...Object.fromEntries(encoded) },
    format: 'jwk',
  });
}

/**
 * Returns the public key of an Ed25519 (RFC 8709 §4) or P-256 key (RFC 5656 §3.1) in the SSH wire
 * encoding.
 */
export function publicKeyBlob(key: KeyObject): Buffer {
  if (key.asymmetricKeyType === 'ed25519') return sshStrings(['ssh-ed25519', half(key, 'x')]);
  const point = Buffer.concat([Buffer.of(4), half(key, 'x'), half(key, 'y')]);
  return sshStrings(['ecdsa-sha2-nistp256', 'nistp256', point]);
}

/** Returns a public key as a line, as in a `.pub` file and in `TrustedUserCAKeys`. */
export function publicKeyLine(blob: Buffer, comment: string): string {
  return `${keyTypeOf(blob)} ${blob.toString('base64')} ${comment}`;
}

/** Returns the type with which a key in the SSH wire encoding begins, such as `ssh-ed25519`. */
export function keyTypeOf(blob: Buffer): string {
  return new SshReader(blob).name();
}

/**
 * Writes an Ed25519 private key in OpenSSH's own format, unencrypted, so that `ssh-keygen` can also
 * use the file.
 */
export function writePrivateKey(key: KeyObject, comment: string): string {
  const publicBlob = publicKeyBlob(key);
  const point = half(key, 'x');
  const secrets = Buffer.concat([
    CHECK,
    CHECK,
    sshStrings(['ssh-ed25519', point, Buffer.concat([half(key, 'd'), point]), comment]),
  ]);
  const missing = (NO_CIPHER_BLOCK - (secrets.length % NO_CIPHER_BLOCK)) % NO_CIPHER_BLOCK;
  const padding = Buffer.from(Array.from({ length: missing }, (_, index) => index + 1));
  const file = Buffer.concat([
    MAGIC,
    sshStrings(['none', 'none', '']),
    uint32(1),
    sshString(publicBlob),
    sshString(Buffer.concat([secrets, padding])),
  ]);
  const lines = file.toString('base64').match(/.{1,70}/g) ?? [];
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

function half(key: KeyObject, part: 'x' | 'y' | 'd'): Buffer {
  return Buffer.from(key.export({ format: 'jwk' })[part] ?? '', 'base64url');
}

function encrypted(): SshFormatError {
  return new SshFormatError('it is encrypted; remove its passphrase with `ssh-keygen -p`');
}

function wrongType(type: string): SshFormatError {
  return new SshFormatError(`it is a key of type ${type}, and must be Ed25519 or P-256`);
}

function halvesDiffer(): SshFormatError {
  return new SshFormatError('its public half does not belong to its private half');
}
