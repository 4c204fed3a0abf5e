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

/** The kinds of SSH key that a security key makes. */
export type SecurityKeyType = 'ed25519' | 'ecdsa';

/** Changes to a correct attestation. A function receives the correct value. */
export interface SshKeyTampering {
  readonly type?: SecurityKeyType;
  /** The application in the public key. */
  readonly application?: string;
  /** The application that is hashed into the authenticator data. */
  readonly rpId?: string;
  /** Makes the attestation of a U2F key, which has no AAGUID and signs no flags. */
  readonly u2f?: boolean;
  /** The flags besides that of the credential. By default user presence alone. */
  readonly flags?: number;
  /** The value of the credProtect extension; absent by default. */
  readonly credProtect?: number;
  readonly aaguid?: Buffer;
  readonly leaf?: Partial<CertificateRequest>;
  /** The signer of the leaf; by default the root. */
  readonly issuer?: GeneratedCertificate;
  /** The certificate in the file. */
  readonly certificate?: (honest: Buffer) => Buffer;
  /** Changes the authenticator data before it is signed. */
  readonly authData?: (honest: Buffer) => Buffer;
  /** Signs the attestation; by default with SHA-256 and the key of the leaf, which it receives. */
  readonly signer?: (signed: Buffer, leafKey: KeyObject) => Buffer;
  /**
   * The fields of the file: magic, certificate, signature, authenticator data as CBOR, reserved
   * flags, reserved string.
   */
  readonly fields?: (honest: Buffer[]) => Buffer[];
}

/**
 * An SSH key in a software security key, with the file that `ssh-keygen -O write-attestation` would
 * write.
 */
export interface SshSecurityKey {
  /** A line as in a `.pub` file. */
  readonly publicKey: string;
  readonly attestation: Buffer;
}

/** A vendor of software security keys with its own root. */
export class SecurityKeyVendor {
  readonly root: GeneratedCertificate;

  constructor(
    readonly now: Date,
    rootName = 'Test SSH Attestation Root',
  ) {
    this.root = issueAuthority(rootName, now);
  }

  /** Makes a key, and its attestation over the challenge. */
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

/** Returns the COSE_Key of an Ed25519 public key (RFC 9053 §7.2), in CTAP2's canonical order. */
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
