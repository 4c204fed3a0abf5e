import { isSignedByItsAuthority, isValidAt, readCertificate, SshFormatError } from '@svc/openssh';
import { sshFields } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { readVectors } from './vectors.js';

const CERTIFICATES = ['certificates.json', 'certificates-p256.json'].flatMap((name) =>
  readVectors(name).map(({ certificate }) => certificate),
);
/**
 * The bytes that the authorities of the test vectors signed. They signed nothing else, so no other
 * certificate may be accepted.
 */
const SIGNED = new Set(
  CERTIFICATES.map((blob) => readCertificate(lineOf(blob)).signed.toString('latin1')),
);
const AUTHORITIES = CERTIFICATES.map((blob) => readCertificate(lineOf(blob)).authority);

export const target: FuzzTarget = {
  parser: 'readCertificate, isSignedByItsAuthority',
  seeds: CERTIFICATES,
  dictionary: [
    'ssh-ed25519-cert-v01@openssh.com',
    'ecdsa-sha2-nistp256-cert-v01@openssh.com',
    'force-command',
    'permit-pty',
    'verify-required',
    Buffer.alloc(8, 0xff),
  ],
  structure: sshFields((type) => `s${'s'.repeat(fieldsOf(type))}84ss88sssss`),
  longest: 8192,
  run(input) {
    const isFormatError = (error: unknown) => error instanceof SshFormatError;
    const certificate = attempt(() => readCertificate(lineOf(input)), isFormatError);
    if (!certificate) return false;
    rule(input.subarray(0, certificate.signed.length).equals(certificate.signed), 'other bytes');
    rule(!isValidAt(certificate, certificate.validBefore), 'a certificate is valid after its end');
    const isSigned = attempt(() => isSignedByItsAuthority(certificate), isFormatError) ?? false;
    const isOurs = AUTHORITIES.some((authority) => authority.equals(certificate.authority));
    const isGenuine = SIGNED.has(certificate.signed.toString('latin1'));
    rule(!isSigned || !isOurs || isGenuine, 'a certificate that the authority did not sign');
    return true;
  },
};

/**
 * Returns a certificate as a line of text. The first word is the type, which is read from the
 * bytes.
 */
function lineOf(blob: Buffer): string {
  const length = blob.length < 4 ? 0 : blob.readUInt32BE();
  const type = blob.subarray(4, 4 + Math.min(64, length)).toString('latin1');
  return `${type} ${blob.toString('base64')}`;
}

/** Returns the number of fields that the public key has in a certificate of this type. */
function fieldsOf(type: string): number {
  if (type.startsWith('sk-ecdsa')) return 3;
  return type.startsWith('ssh-ed25519') ? 1 : 2;
}
