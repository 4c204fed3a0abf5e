import { ECDH, hash } from 'node:crypto';
import { ed25519PointFault } from './ed25519-point.js';
import { SshFormatError, SshReader } from './wire.js';

/** A public key for which a certificate is to be signed. It has passed every check. */
export interface SshPublicKey {
  readonly type: SshKeyType;
  /** The key in the SSH wire encoding (RFC 4253 §6.6), beginning with its type. */
  readonly blob: Buffer;
  /** The fingerprint as `ssh-keygen -l` prints it: `SHA256:…`. */
  readonly fingerprint: string;
}

/**
 * The error for a text that is no acceptable public key. Its message is for the person who sent the
 * text. It names at most the type of the key, and repeats nothing else of the text, which may be a
 * private key.
 */
export class SshKeyRefusal extends Error {
  override readonly name = 'SshKeyRefusal';
}

export type SshKeyType = keyof typeof KEY_FIELDS;

/**
 * The accepted key types. Each has the function that parses the fields after the type, and throws
 * if a field is wrong.
 */
const KEY_FIELDS = {
  'ssh-ed25519': ed25519,
  'ecdsa-sha2-nistp256': (fields: SshReader) => ecdsa(fields, 'nistp256'),
  'ecdsa-sha2-nistp384': (fields: SshReader) => ecdsa(fields, 'nistp384'),
  'ecdsa-sha2-nistp521': (fields: SshReader) => ecdsa(fields, 'nistp521'),
  'ssh-rsa': rsa,
  'sk-ssh-ed25519@openssh.com': (fields: SshReader) => {
    ed25519(fields);
    application(fields);
  },
  'sk-ecdsa-sha2-nistp256@openssh.com': (fields: SshReader) => {
    ecdsa(fields, 'nistp256');
    application(fields);
  },
};

/**
 * The NIST curves by their SSH names (RFC 5656 §10.1). Each has the name in OpenSSL, and the number
 * of bytes of one coordinate.
 */
const CURVES = {
  nistp256: { openssl: 'prime256v1', coordinate: 32 },
  nistp384: { openssl: 'secp384r1', coordinate: 48 },
  nistp521: { openssl: 'secp521r1', coordinate: 66 },
};

const RSA_BITS = { least: 3072, most: 16_384 }; // OpenSSH refuses a longer modulus

/**
 * Parses one line of the form `type base64 [comment]`, as `ssh-keygen` writes a `.pub` file. The
 * comment is ignored, and the rest is checked. The type inside the base64 must equal the type
 * before it. Every length must be exact, and points must be on their curve.
 * @throws SshKeyRefusal that names the fault, and for some faults what to send instead
 */
export function parseSshPublicKey(text: string): SshPublicKey {
  const line = text.trim();
  refuseOtherDocuments(line);
  const [type = '', encoded = ''] = line.split(/[ \t]+/, 2);
  if (!isKeyType(type)) throw refusal(unacceptedType(type));
  const blob = decodeBase64(encoded);
  try {
    const fields = new SshReader(blob);
    if (fields.name() !== type) {
      throw new SshFormatError(`it does not hold the ${type} key that the line announces`);
    }
    KEY_FIELDS[type](fields);
    fields.end();
  } catch (error) {
    if (!(error instanceof SshFormatError)) throw error;
    throw refusal(`The key is invalid: ${error.message}.`, error);
  }
  return { type, blob, fingerprint: sshFingerprint(blob) };
}

/**
 * Returns the fingerprint of a key in the SSH wire encoding, as `ssh-keygen -l` prints it:
 * `SHA256:` and base64 without padding.
 */
export function sshFingerprint(blob: Buffer): string {
  return `SHA256:${hash('sha256', blob, 'base64').replace(/=+$/, '')}`;
}

function refusal(message: string, cause?: unknown): SshKeyRefusal {
  return new SshKeyRefusal(message, { cause });
}

/**
 * Refuses other kinds of documents, with an error text for each. The most important kind is a
 * private key, because the user must replace it after it was sent.
 */
function refuseOtherDocuments(line: string): void {
  if (line === '') throw refusal('The public key is empty.');
  if (/PRIVATE KEY ?----|^PuTTY-User-Key-File/.test(line)) {
    throw refusal(
      'This is a private key. It must never leave your machine: replace it, and send the .pub file of the new one.',
    );
  }
  if (line.startsWith('----')) {
    throw refusal(
      'This is not the one-line OpenSSH form. Convert it with `ssh-keygen -i -f FILE` and send the line it prints.',
    );
  }
  if (/[\r\n]/.test(line)) throw refusal('Send exactly one public key on one line.');
}

function isKeyType(type: string): type is SshKeyType {
  return Object.hasOwn(KEY_FIELDS, type);
}

function unacceptedType(type: string): string {
  if (/-cert-v\d\d@openssh\.com$/.test(type)) {
    return 'This is a certificate, not a public key. Send the .pub file it was made from.';
  }
  if (type === 'ssh-dss')
    return 'DSA keys are not accepted. Make one with `ssh-keygen -t ed25519`.';
  return `The line does not begin with an accepted key type: ${Object.keys(KEY_FIELDS).join(', ')}.`;
}

/**
 * Decodes base64. If the result does not encode to the same text again, the text is refused,
 * because the decoder of Node skips unknown characters.
 */
function decodeBase64(encoded: string): Buffer {
  const decoded = Buffer.from(encoded, 'base64');
  if (decoded.length === 0 || decoded.toString('base64') !== encoded) {
    throw refusal('What follows the key type is not valid base64.');
  }
  return decoded;
}

/** Checks the fields of an Ed25519 key (RFC 8709 §4). */
function ed25519(fields: SshReader): void {
  const point = fields.string();
  if (point.length !== 32) throw new SshFormatError('its point does not have 32 bytes');
  const fault = ed25519PointFault(point);
  if (fault) throw new SshFormatError(fault);
}

/** Checks the fields of an ECDSA key, whose point is uncompressed (RFC 5656 §3.1). */
function ecdsa(fields: SshReader, curve: keyof typeof CURVES): void {
  if (fields.name() !== curve) throw new SshFormatError('its curve is not the one of its type');
  const { openssl, coordinate } = CURVES[curve];
  const point = fields.string();
  if (point.length !== 1 + 2 * coordinate || point[0] !== 4) {
    throw new SshFormatError('its point is not in uncompressed form');
  }
  try {
    ECDH.convertKey(point, openssl); // refuses a point that is not on the curve
  } catch (cause) {
    throw new SshFormatError('its point is not on the curve', { cause });
  }
}

/**
 * Checks the fields of an RSA key (RFC 4253 §6.6). The public exponent must be one that FIPS 186-5
 * §5.1 allows, with at most 64 bits. OpenSSH accepts all of these.
 */
function rsa(fields: SshReader): void {
  const exponent = fields.mpint();
  const modulus = fields.mpint();
  const bits = modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24;
  if (bits < RSA_BITS.least) {
    throw new SshFormatError(
      `it is an RSA key of ${bits} bits, and ${RSA_BITS.least} are the least; \`ssh-keygen -t ed25519\` makes a better one`,
    );
  }
  if (bits > RSA_BITS.most) {
    throw new SshFormatError(`it is an RSA key of ${bits} bits, and ${RSA_BITS.most} are the most`);
  }
  if (isEven(modulus)) throw new SshFormatError('its modulus is even');
  if (isEven(exponent)) throw new SshFormatError('its exponent is even');
  if (exponent.length > 8 || exponent.readUIntBE(0, Math.min(exponent.length, 6)) < 0x1_0001) {
    throw new SshFormatError('its exponent is not between 65537 and 2^64');
  }
}

function isEven(magnitude: Buffer): boolean {
  return ((magnitude.at(-1) ?? 0) & 1) === 0;
}

/**
 * Checks the application string of a key inside a security key (OpenSSH PROTOCOL.u2f), which is
 * `ssh:` unless the owner chose another.
 */
function application(fields: SshReader): void {
  if (!/^[\x21-\x7e]{1,255}$/.test(fields.name())) {
    throw new SshFormatError('its application is not 1 to 255 printable characters');
  }
}
