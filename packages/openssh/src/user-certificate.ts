import { keyTypeOf } from './private-key.js';
import type { SshKeyType, SshPublicKey } from './public-key.js';
import { SshReader, sshMpint, sshString, sshStrings, uint32, uint64 } from './wire.js';

/** The fields of a user certificate to sign. */
export interface UserCertificate {
  readonly subject: SshPublicKey;
  /** 32 random bytes. Because of them, the client cannot predict the bytes that are signed. */
  readonly nonce: Buffer;
  readonly serial: bigint;
  readonly keyId: string;
  /**
   * The principals: the names that a server compares with those that it admits to an account. The
   * list must not be empty: older versions of sshd accept a certificate without principals if its
   * authority is a `cert-authority` in the file `authorized_keys` of an account.
   */
  readonly principals: readonly string[];
  /** The first moment at which the certificate is valid. Fractions of a second are left out. */
  readonly validAfter: Date;
  /** The moment at which the certificate expires. Fractions of a second are left out. */
  readonly validBefore: Date;
  /**
   * True for a key in a security key that demands its PIN or fingerprint. sshd then refuses a
   * signature that was made without it.
   */
  readonly verifyRequired?: boolean;
}

/**
 * A key of the certificate authority: its public key in the SSH wire encoding, and the function
 * that signs with it.
 */
export interface SigningAuthority {
  readonly publicBlob: Buffer;
  /**
   * Signs bytes. The signature has 64 bytes: an Ed25519 signature (RFC 8032), or r and s of ECDSA
   * with P-256 and SHA-256, each with 32 bytes.
   */
  sign(message: Buffer): Promise<Buffer>;
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

/**
 * The only critical option that {@link signUserCertificate} writes. A server that does not know the
 * option refuses the certificate.
 */
const VERIFY_REQUIRED = sshString(sshStrings(['verify-required', '']));

/**
 * The extensions of every certificate, in the lexical order that the format demands. Each has an
 * empty value.
 */
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
 * Signs an OpenSSH v01 user certificate (OpenSSH PROTOCOL.certkeys) for any accepted key type. The
 * certificate has five extensions (`permit-*`), and at most the critical option `verify-required`.
 * @returns the line `type base64`, as in a `-cert.pub` file
 */
export async function signUserCertificate(
  certificate: UserCertificate,
  authority: SigningAuthority,
): Promise<string> {
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
  const signature = encodeSignature(authority.publicBlob, await authority.sign(signed));
  return `${type} ${Buffer.concat([signed, sshString(signature)]).toString('base64')}`;
}

/**
 * Encodes a signature by the type of its key: Ed25519 without a change (RFC 8709 §6), ECDSA as two
 * integers (RFC 5656 §3.1.2).
 */
function encodeSignature(publicBlob: Buffer, signature: Buffer): Buffer {
  const type = keyTypeOf(publicBlob);
  if (type === 'ssh-ed25519') return sshStrings([type, signature]);
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
  return sshStrings([type, Buffer.concat([sshMpint(r), sshMpint(s)])]);
}

function epochSeconds(time: Date): bigint {
  return BigInt(Math.floor(time.getTime() / 1000));
}
