import { createPublicKey, type KeyObject } from 'node:crypto';
import { isAuthorityKey, keyTypeOf, publicKeyBlob, readPrivateKey } from './private-key.js';
import { parseSshPublicKey, SshKeyRefusal } from './public-key.js';
import { SshFormatError } from './wire.js';

/** A key of the SSH certificate authority that the configuration names. */
export interface ConfiguredKey {
  /** The public key in the SSH wire encoding. */
  readonly publicBlob: Buffer;
  /** The private key; undefined for a key that is only published, so that hosts still trust it. */
  readonly privateKey: KeyObject | undefined;
}

/** Matches a PEM block, or else a single line, which may have a key in OpenSSH's format. */
const PARTS = /-----BEGIN [^-]+-----[^-]*-----END [^-]+-----|[^\r\n]+/g;
const PUBLIC_LINE = /^(?:sk-)?(?:ssh|ecdsa)-/;

/**
 * Parses the keys of a certificate authority; the first one signs. Private keys are in OpenSSH's
 * format or PKCS#8, public keys are lines of a `.pub` file or PEM. Empty lines and lines that begin
 * with `#` are ignored. A public key and its private key count as one key.
 * @throws SshFormatError that names the fault, and the number of any key but the first. The error
 *   never contains a part of the key
 */
export function readAuthorityKeys(text: string): ConfiguredKey[] {
  const parts = (text.match(PARTS) ?? [])
    .map((part) => part.trim())
    .filter((part) => part !== '' && !part.startsWith('#'));
  const keys = (parts.length === 0 ? [''] : parts).map((part, index) => {
    try {
      return readKey(part);
    } catch (error) {
      if (index === 0 || !(error instanceof SshFormatError)) throw error;
      throw new SshFormatError(`key ${index + 1}: ${error.message}`, { cause: error });
    }
  });
  return withoutTwins(keys);
}

/**
 * Removes duplicates of keys. A key keeps its first position in the list, and has its private key
 * if any of the duplicates has it.
 */
function withoutTwins(keys: readonly ConfiguredKey[]): ConfiguredKey[] {
  const first = keys.filter(
    ({ publicBlob }, index) =>
      keys.findIndex((other) => other.publicBlob.equals(publicBlob)) === index,
  );
  return first.map(
    (key) =>
      keys.find(({ publicBlob, privateKey }) => privateKey && publicBlob.equals(key.publicBlob)) ??
      key,
  );
}

function readKey(part: string): ConfiguredKey {
  if (PUBLIC_LINE.test(part)) return { publicBlob: readPublicLine(part), privateKey: undefined };
  if (part.startsWith('-----BEGIN PUBLIC KEY-----')) {
    return { publicBlob: readPublicPem(part), privateKey: undefined };
  }
  const privateKey = readPrivateKey(part);
  return { publicBlob: publicKeyBlob(privateKey), privateKey };
}

function readPublicLine(line: string): Buffer {
  try {
    const { blob } = parseSshPublicKey(line);
    const type = keyTypeOf(blob);
    if (type === 'ssh-ed25519' || type === 'ecdsa-sha2-nistp256') return blob;
    throw new SshFormatError(`it is a key of type ${type}, and must be Ed25519 or P-256`);
  } catch (error) {
    if (!(error instanceof SshKeyRefusal)) throw error;
    throw new SshFormatError('it is a damaged public key', { cause: error });
  }
}

function readPublicPem(pem: string): Buffer {
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw new SshFormatError('its PEM encoding is damaged');
  }
  if (isAuthorityKey(key)) return publicKeyBlob(key);
  const type = key.asymmetricKeyType ?? 'unknown';
  throw new SshFormatError(`it is a key of type ${type}, and must be Ed25519 or P-256`);
}
