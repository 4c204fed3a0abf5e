import { readFileSync } from 'node:fs';

/** The parts of a file of `test/vectors/ssh` that become inputs: lines that ssh-keygen wrote. */
interface Vectors {
  readonly certificates: readonly { readonly publicKey: string; readonly certificate: string }[];
}

/**
 * Reads the public keys and certificates of a file in `test/vectors/ssh`, and decodes their base64.
 */
export function readVectors(name: string): { publicKey: Buffer; certificate: Buffer }[] {
  const { certificates } = JSON.parse(readFileSync(`test/vectors/ssh/${name}`, 'utf8')) as Vectors;
  const decoded = (line: string) => Buffer.from(line.split(' ')[1] ?? '', 'base64');
  return certificates.map(({ publicKey, certificate }) => ({
    publicKey: decoded(publicKey),
    certificate: decoded(certificate),
  }));
}
