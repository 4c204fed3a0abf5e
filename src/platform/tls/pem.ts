import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';

const BEGIN = '-----BEGIN ';

/**
 * Returns a PEM text. The source is the text itself, the text in base64, or the path of a file with
 * the text.
 *
 * @throws the system's error if there is no such file
 */
export function readPem(source: string): string {
  return decoded(source) ?? readFileSync(source, 'utf8');
}

/** Returns true if a text is PEM or base64 of PEM. */
export function isPem(text: string): boolean {
  return decoded(text) !== undefined;
}

function decoded(text: string): string | undefined {
  if (text.includes(BEGIN)) return text;
  const latin = Buffer.from(text, 'base64').toString('latin1');
  return latin.includes(BEGIN) ? latin : undefined;
}

/**
 * Returns the certificates of a source, each as a block of PEM; undefined if it has none.
 *
 * @throws an error for a file that cannot be read, and for a block that is no certificate
 */
export function readCertificates(source: string): string[] | undefined {
  const blocks =
    readPem(source).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const areSound = blocks.every((block) => new X509Certificate(block).raw.length > 0);
  return blocks.length > 0 && areSound ? blocks : undefined;
}

/** Returns true if a PEM block is a private key. */
export function isPrivate(block: string): boolean {
  return block.includes('PRIVATE KEY-----');
}

/**
 * Returns the keys of a source, private or public, each as a block of PEM. Returns undefined if the
 * source has no key, a block that is cut off, or a key for which `fits` returns false.
 *
 * @throws an error for a file that cannot be read, and for a block that is no key
 */
export function readKeys(source: string, fits: (key: KeyObject) => boolean): string[] | undefined {
  const whole = readPem(source);
  const blocks = whole.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g) ?? [];
  const [first = ''] = blocks;
  const areBlocks = whole.split(BEGIN).length - 1 === blocks.length;
  const areFit = blocks.length > 0 && blocks.every((block) => fits(createPublicKey(block)));
  const isSound = !isPrivate(first) || fits(createPrivateKey(first));
  return areBlocks && areFit && isSound ? blocks : undefined;
}
