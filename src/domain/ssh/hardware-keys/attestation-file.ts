import { readCanonicalCbor, Refusal } from '@svc/webauthn-policy';
import { SshFormatError, SshReader } from '@svc/openssh';

/** The contents of an attestation file that a client sent. They are not verified yet. */
export interface AttestationFile {
  /** The attestation certificate in DER. The file format has room for one certificate only. */
  readonly certificate: Buffer;
  readonly signature: Buffer;
  readonly authenticatorData: Buffer;
}

const FORMAT = 'ssh-sk-attest-v01';
/**
 * The name of the file format of OpenSSH 8.2 and 8.3, which is refused because it lacks the
 * authenticator data that the signature covers.
 */
const OLD_FORMAT = 'ssh-sk-attest-v00';

/**
 * Reads the file that `ssh-keygen -O write-attestation=FILE` writes (OpenSSH PROTOCOL.u2f). It has
 * the name of the format, the certificate, the signature, the authenticator data as a CBOR byte
 * string, and two empty reserved fields.
 *
 * @throws Refusal for any other bytes
 */
export function readAttestationFile(bytes: Buffer): AttestationFile {
  try {
    return readFields(new SshReader(bytes));
  } catch (cause) {
    if (!(cause instanceof SshFormatError)) throw cause;
    throw new Refusal(`The attestation file is damaged: ${cause.message}.`, { cause });
  }
}

function readFields(file: SshReader): AttestationFile {
  const format = file.name();
  if (format === OLD_FORMAT) {
    throw new Refusal(
      `The attestation has the old format ${OLD_FORMAT}, which lacks the authenticator data and proves nothing. Make the key again with OpenSSH 8.4 or newer.`,
    );
  }
  if (format !== FORMAT) throw new Refusal(`The attestation file is not of format ${FORMAT}.`);
  const certificate = file.string();
  const signature = file.string();
  const wrapped = file.string();
  const reservedFlags = file.uint32();
  const reserved = file.string();
  file.end();
  if (reservedFlags !== 0 || reserved.length > 0) {
    throw new Refusal('The reserved fields of the attestation file are not empty.');
  }
  if (certificate.length === 0) {
    throw new Refusal('The security key sent no attestation certificate: it attests only itself.');
  }
  return { certificate, signature, authenticatorData: unwrap(wrapped) };
}

function unwrap(wrapped: Buffer): Buffer {
  if (wrapped.length === 0) throw new Refusal('The attestation lacks the authenticator data.');
  const [authenticatorData, ...others] = readCanonicalCbor(wrapped);
  if (!(authenticatorData instanceof Uint8Array) || others.length > 0) {
    throw new Refusal('The authenticator data is not one CBOR byte string.');
  }
  return Buffer.from(authenticatorData);
}
