import { generateKeyPairSync, hash, sign, type KeyObject } from 'node:crypto';
import { sshString, sshStrings, uint32 } from '@svc/openssh';
import { issueAttestationLeaf, issueAuthority } from '@svc/stand-ins/attestation-authority';
import {
  authenticatorData,
  coseKey,
  encodeCbor,
  FLAG,
} from '@svc/stand-ins/authenticator-messages';
import type { CertificateRequest, GeneratedCertificate } from '@svc/stand-ins/certificates';
import { AAGUID, aaguidBytes } from './soft-key.js';

/** The types of SSH keys that a security key can make. */
export type SecurityKeyType = 'ed25519' | 'ecdsa';

/** Changes to an otherwise correct attestation. A function gets the correct value. */
export interface SshKeyTampering {
  readonly type?: SecurityKeyType;
  /** The application string in the public key. Correct ones begin with `ssh:`. */
  readonly application?: string;
  /** The application string whose hash is in the authenticator data. */
  readonly rpId?: string;
  /** True to make the attestation of a U2F key, which has no AAGUID and signs no flags. */
  readonly u2f?: boolean;
  /**
   * The flags in the authenticator data, without the one for attested credential data. By default
   * it is only user presence.
   */
  readonly flags?: number;
  /** The value of the credProtect extension. By default the extension is absent. */
  readonly credProtect?: number;
  readonly aaguid?: Buffer;
  readonly leaf?: Partial<CertificateRequest>;
  /** The authority that signs the attestation certificate. By default it is the vendor's root. */
  readonly issuer?: GeneratedCertificate;
  /** Changes the certificate in the attestation file. */
  readonly certificate?: (honest: Buffer) => Buffer;
  /** Changes the authenticator data before it is signed. */
  readonly authData?: (honest: Buffer) => Buffer;
  /**
   * Returns the signature of the attestation. `leafKey` is the key of the attestation certificate.
   * By default it signs with SHA-256.
   */
  readonly signer?: (signed: Buffer, leafKey: KeyObject) => Buffer;
  /**
   * Changes the fields of the attestation file: magic, certificate, signature, authenticator data
   * as CBOR, reserved flags, reserved string.
   */
  readonly fields?: (honest: Buffer[]) => Buffer[];
}

/**
 * An SSH key in a software security key, with the attestation file that `ssh-keygen -O
 * write-attestation` would write.
 */
export interface SshSecurityKey {
  /** The public key as a line of a `.pub` file. */
  readonly publicKey: string;
  readonly attestation: Buffer;
}

/** A vendor of software security keys, with an attestation root of its own. */
export class SecurityKeyVendor {
  readonly root: GeneratedCertificate;

  constructor(
    readonly now: Date,
    rootName = 'Test SSH Attestation Root',
  ) {
    this.root = issueAuthority(rootName, now);
  }

  /** Makes an SSH key, and its attestation for the challenge. */
  newKey(challenge: Buffer, tampering: SshKeyTampering = {}): SshSecurityKey {
    const type = tampering.type ?? 'ecdsa';
    const { publicKey } =
      type === 'ecdsa'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('ed25519');
    const authData = this.#authenticatorData(publicKey, type, tampering);
    const leaf = issueAttestationLeaf(
      aaguidBytes(AAGUID),
      this.now,
      tampering.issuer ?? this.root,
      tampering.leaf,
    );
    const clientDataHash = hash('sha256', challenge, 'buffer');
    const signed = tampering.u2f
      ? u2fSignedData(authData, clientDataHash, publicKey)
      : Buffer.concat([authData, clientDataHash]);
    const signature =
      tampering.signer?.(signed, leaf.privateKey) ?? sign('sha256', signed, leaf.privateKey);
    const honest = [
      sshString('ssh-sk-attest-v01'),
      sshString(tampering.certificate?.(leaf.der) ?? leaf.der),
      sshString(signature),
      sshString(encodeCbor(authData)),
      uint32(0),
      sshString(''),
    ];
    return {
      publicKey: publicKeyLineOf(publicKey, type, tampering.application ?? 'ssh:'),
      attestation: Buffer.concat(tampering.fields?.(honest) ?? honest),
    };
  }

  #authenticatorData(
    publicKey: KeyObject,
    type: SecurityKeyType,
    { rpId = 'ssh:', flags = FLAG.userPresent, credProtect, ...tampering }: SshKeyTampering,
  ): Buffer {
    const aaguid = tampering.aaguid ?? (tampering.u2f ? Buffer.alloc(16) : aaguidBytes(AAGUID));
    const length = Buffer.alloc(2);
    length.writeUInt16BE(CREDENTIAL_ID.length);
    const extensions =
      credProtect === undefined ? undefined : new Map([['credProtect', credProtect]]);
    const fixed = authenticatorData(rpId, flags, 1);
    fixed.writeUInt8(flags | FLAG.credential | (extensions ? 0x80 : 0), 32);
    const honest = Buffer.concat([
      fixed,
      aaguid,
      length,
      CREDENTIAL_ID,
      encodeCbor(type === 'ecdsa' ? coseKey(publicKey) : coseEd25519(publicKey)),
      ...(extensions ? [encodeCbor(extensions)] : []),
    ]);
    return tampering.authData?.(honest) ?? honest;
  }
}

const CREDENTIAL_ID = Buffer.alloc(64, 0x1d);

function publicKeyLineOf(key: KeyObject, type: SecurityKeyType, application: string): string {
  const name =
    type === 'ecdsa' ? 'sk-ecdsa-sha2-nistp256@openssh.com' : 'sk-ssh-ed25519@openssh.com';
  const fields = type === 'ecdsa' ? ['nistp256', pointOf(key)] : [half(key, 'x')];
  return `${name} ${sshStrings([name, ...fields, application]).toString('base64')} test@example`;
}

/**
 * Returns an Ed25519 public key as a COSE_Key (RFC 9053 §7.2), with its members in CTAP2's
 * canonical order.
 */
function coseEd25519(key: KeyObject): Map<number, number | Buffer> {
  return new Map<number, number | Buffer>([
    [1, 1],
    [3, -8],
    [-1, 6],
    [-2, half(key, 'x')],
  ]);
}

function u2fSignedData(authData: Buffer, clientDataHash: Buffer, key: KeyObject): Buffer {
  const rpIdHash = authData.subarray(0, 32);
  return Buffer.concat([Buffer.of(0), rpIdHash, clientDataHash, CREDENTIAL_ID, pointOf(key)]);
}

function pointOf(key: KeyObject): Buffer {
  return Buffer.concat([Buffer.of(4), half(key, 'x'), half(key, 'y')]);
}

function half(key: KeyObject, coordinate: 'x' | 'y'): Buffer {
  return Buffer.from(key.export({ format: 'jwk' })[coordinate] ?? '', 'base64url');
}
