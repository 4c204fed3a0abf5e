import { type KeyObject, sign } from 'node:crypto';
import type { SshKeyType, SshPublicKey } from './public-key.js';
import { SshReader, sshString, sshStrings, uint32, uint64 } from './wire.js';

/** The fields of a user certificate. */
export interface UserCertificate {
  readonly subject: SshPublicKey;
  /** 32 random bytes, so that a client cannot choose the bytes that the authority signs. */
  readonly nonce: Buffer;
  readonly serial: bigint;
  readonly keyId: string;
  /** The accounts that the certificate opens. It is never empty, since OpenSSH accepts an empty list for every account. */
  readonly principals: readonly string[];
  /** Inclusive; whole seconds count. */
  readonly validAfter: Date;
  /** Exclusive; whole seconds count. */
  readonly validBefore: Date;
  /** True for a key whose security key demands its PIN or fingerprint; sshd then refuses a signature without it. */
  readonly verifyRequired?: boolean;
}

/** An Ed25519 certificate authority: its private key, and its public key in the SSH wire encoding. */
export interface SigningAuthority {
  readonly privateKey: KeyObject;
  readonly publicBlob: Buffer;
}

const CERTIFICATE_TYPES: Record<SshKeyType, string> = {
  'ssh-ed25519': 'ssh-ed25519-cert-v01@openssh.com',
  'ecdsa-sha2-nistp256': 'ecdsa-sha2-nistp256-cert-v01@openssh.com',
  'ecdsa-sha2-nistp384': 'ecdsa-sha2-nistp384-cert-v01@openssh.com',
  'ecdsa-sha2-nistp521': 'ecdsa-sha2-nistp521-cert-v01@openssh.com',
  'ssh-rsa': 'ssh-rsa-cert-v01@openssh.com',
  'sk-ssh-ed25519@openssh.com': 'sk-ssh-ed25519-cert-v01@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com': 'sk-ecdsa-sha2-nistp256-cert-v01@openssh.com',
};

const USER_CERTIFICATE = uint32(1); // SSH2_CERT_TYPE_USER
const NOTHING = sshString('');

/** The one critical option of this service. A server that does not know it refuses the certificate. */
const VERIFY_REQUIRED = sshString(sshStrings(['verify-required', '']));

/** The extensions of every certificate, in the lexical order the format demands; each has an empty value. */
const EXTENSIONS = sshString(
  sshStrings(
    [
      'permit-X11-forwarding',
      'permit-agent-forwarding',
      'permit-port-forwarding',
      'permit-pty',
      'permit-user-rc',
    ].flatMap((name) => [name, '']),
  ),
);

/**
 * Signs an OpenSSH v01 user certificate (OpenSSH PROTOCOL.certkeys) for any accepted key type: five `permit-*`
 * extensions, and no critical option but `verify-required`.
 * @returns the line `type base64`, as a `-cert.pub` file holds it
 */
export function signUserCertificate(
  certificate: UserCertificate,
  authority: SigningAuthority,
): string {
  const { subject, principals } = certificate;
  const type = CERTIFICATE_TYPES[subject.type];
  const key = new SshReader(subject.blob);
  key.string(); // the key's fields follow its type, and go into the certificate as they are

  const signed = Buffer.concat([
    sshString(type),
    sshString(certificate.nonce),
    key.rest(),
    uint64(certificate.serial),
    USER_CERTIFICATE,
    sshString(certificate.keyId),
    sshString(sshStrings(principals)),
    uint64(epochSeconds(certificate.validAfter)),
    uint64(epochSeconds(certificate.validBefore)),
    certificate.verifyRequired ? VERIFY_REQUIRED : NOTHING, // critical options
    EXTENSIONS,
    NOTHING, // reserved
    sshString(authority.publicBlob),
  ]);
  const signature = sshStrings(['ssh-ed25519', sign(null, signed, authority.privateKey)]);
  return `${type} ${Buffer.concat([signed, sshString(signature)]).toString('base64')}`;
}

function epochSeconds(time: Date): bigint {
  return BigInt(Math.floor(time.getTime() / 1000));
}
