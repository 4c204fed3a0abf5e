import { hash } from 'node:crypto';
import {
  completeChain,
  ES256,
  FLAG,
  parseCertificate,
  readAuthenticatorData,
  Refusal,
  verifyAttestation,
  type AttestationTrust,
  type AttestedCredential,
  type AuthenticatorData,
} from '@svc/webauthn-policy';
import { type SshPublicKey, SshReader, sshStrings } from '@svc/openssh';
import { readAttestationFile } from './attestation-file.js';

/**
 * The FIDO relying party id of an SSH key, which OpenSSH calls its application. `ssh-keygen` sets
 * this value by default.
 */
const APPLICATION = 'ssh:';

/**
 * The level `userVerificationRequired` of the credProtect extension (CTAP 2.1 §12.1): the key signs
 * only after a PIN or fingerprint. `ssh-keygen -O verify-required` requests it.
 */
const VERIFICATION_REQUIRED = 3;

/** The labels of a COSE_Key (RFC 9052 §7.1, RFC 9053 §7): the fields of a public key of FIDO. */
const COSE = { keyType: 1, algorithm: 3, curve: -1, x: -2, y: -3 } as const;
const P256 = { keyType: 2, algorithm: ES256, curve: 1 } as const;
const ED25519 = { keyType: 1, algorithm: -8, curve: 6 } as const;

/** The types of SSH keys whose private half is in a security key. */
const SECURITY_KEY_TYPES: ReadonlySet<string> = new Set([
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
]);

/**
 * Returns true if a public key has a type for security keys. The client states the type, and only
 * an attestation proves it.
 */
export function isSecurityKey({ type }: Pick<SshPublicKey, 'type'>): boolean {
  return SECURITY_KEY_TYPES.has(type);
}

/** The facts about an SSH key that its attestation proves. */
export interface ProvenKey {
  /** The AAGUID of the model, as the attestation certificate states it. */
  readonly aaguid: string | null;
  /**
   * True if the security key verified its user when the SSH key was made, and will demand a PIN or
   * fingerprint for each signature.
   */
  readonly verifyRequired: boolean;
}

/**
 * Decides if an attestation file proves that the private half of an SSH key is inside a security
 * key of the pinned vendor.
 *
 * @param attestation the public key to certify, the bytes of the file, and the challenge that the
 *   file must answer
 * @throws Refusal for every other file, with the first reason found
 */
export function verifyKeyAttestation(
  attestation: {
    readonly key: SshPublicKey;
    readonly file: Buffer;
    readonly challenge: Buffer;
  },
  trust: AttestationTrust,
): ProvenKey {
  const { key, challenge } = attestation;
  checkApplication(key);
  const { certificate, signature, authenticatorData } = readAttestationFile(attestation.file);
  const data = readAuthenticatorData(authenticatorData, 'registration');
  const { aaguid, credentialId, publicKey } = credentialOf(data, key);
  checkFixedPart(data);

  // The file does not name its format, so the AAGUID (id of the model) decides: that of a U2F key
  // is all zeros. A client gains nothing by a forged AAGUID. The signed data of the two formats
  // begin with different bytes, so the signature would not verify.
  const format = aaguid.every((byte) => byte === 0) ? 'fido-u2f' : 'packed';
  const chain = completeChain(parseCertificate(certificate), trust.anchors);
  const model = verifyAttestation(
    { format, signature, x5c: chain.map(({ x509 }) => x509.raw) },
    {
      authenticatorData,
      clientDataHash: hash('sha256', challenge, 'buffer'),
      rpIdHash: data.rpIdHash,
      aaguid,
      credentialId,
      publicKey,
    },
    trust,
  );
  // A U2F key signs no flags at its registration (WebAuthn §8.6), so the client could set any flag.
  // Therefore the flag is ignored for such a key.
  return { aaguid: model, verifyRequired: format === 'packed' && demandsVerification(data) };
}

/**
 * Refuses an SSH key that was made for another application (relying party id) than `ssh:`. Another
 * service may have chosen the challenge for such a key, so its attestation proves nothing here.
 */
function checkApplication(key: SshPublicKey): void {
  if (!isSecurityKey(key)) {
    throw new Refusal('Only a key of a type that begins with "sk-" can have an attestation.');
  }
  if (!key.blob.subarray(-APPLICATION.length - 4).equals(sshStrings([APPLICATION]))) {
    throw new Refusal(
      `The key belongs to another application than "${APPLICATION}". Make it without \`-O application\`.`,
    );
  }
}

/**
 * Checks that the authenticator data names the relying party of SSH, and that the user touched the
 * key.
 */
function checkFixedPart({ rpIdHash, flags }: AuthenticatorData): void {
  if (!rpIdHash.equals(hash('sha256', APPLICATION, 'buffer'))) {
    throw new Refusal(`The attestation is of another application than "${APPLICATION}".`);
  }
  if ((flags & FLAG.userPresent) === 0) throw new Refusal('The key does not report a touch.');
}

/**
 * Returns the credential that the security key attested, after a check that its public key is the
 * SSH key.
 */
function credentialOf(
  { credential }: AuthenticatorData,
  key: SshPublicKey,
): Pick<AttestedCredential, 'aaguid' | 'credentialId' | 'publicKey'> {
  const cose: unknown = credential?.key;
  if (!credential || !(cose instanceof Map)) throw new Refusal('The credential has no public key.');
  const attested = coseOf(key);
  const isSame =
    cose.size === attested.size &&
    [...attested].every(([label, value]) => isSameValue(cose.get(label), value));
  if (!isSame) throw new Refusal('The attestation is of another key.');
  const [x, y] = [attested.get(COSE.x), attested.get(COSE.y)];
  const publicKey = x instanceof Buffer && y instanceof Buffer ? { x, y } : undefined;
  return { aaguid: credential.aaguid, credentialId: credential.credentialId, publicKey };
}

/**
 * Returns the public key that the attestation must contain for an SSH key, in the COSE encoding of
 * FIDO.
 */
function coseOf({ type, blob }: SshPublicKey): Map<number, number | Buffer> {
  const fields = new SshReader(blob);
  fields.name();
  if (type === 'sk-ssh-ed25519@openssh.com') return coseKey(ED25519, fields.string());
  fields.name(); // skips the name of the curve
  const point = fields.string().subarray(1);
  return coseKey(P256, point.subarray(0, 32)).set(COSE.y, point.subarray(32));
}

function coseKey(kind: typeof P256 | typeof ED25519, x: Buffer): Map<number, number | Buffer> {
  return new Map<number, number | Buffer>([
    [COSE.keyType, kind.keyType],
    [COSE.algorithm, kind.algorithm],
    [COSE.curve, kind.curve],
    [COSE.x, x],
  ]);
}

function isSameValue(value: unknown, expected: number | Buffer): boolean {
  if (!Buffer.isBuffer(expected)) return value === expected;
  return value instanceof Uint8Array && expected.equals(value);
}

/**
 * Returns true if the security key signs only after a PIN or fingerprint. The signed data must
 * state this twice: by the flag UV, and by the level of protection (credProtect) of the key.
 */
function demandsVerification({ flags, extensions }: AuthenticatorData): boolean {
  const isVerified = (flags & FLAG.userVerified) !== 0;
  return isVerified && extensions.get('credProtect') === VERIFICATION_REQUIRED;
}
