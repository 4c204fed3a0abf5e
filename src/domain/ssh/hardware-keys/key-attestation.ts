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
 * The application of an SSH key, which FIDO calls the relying party id. `ssh-keygen` sets this one
 * by default.
 */
const APPLICATION = 'ssh:';

/**
 * `userVerificationRequired` of the credProtect extension (CTAP 2.1 §12.1), which
 * `ssh-keygen -O verify-required` requests.
 */
const VERIFICATION_REQUIRED = 3;

/** COSE_Key labels (RFC 9053 §7), and the values of the two kinds of key that OpenSSH makes. */
const COSE = { keyType: 1, algorithm: 3, curve: -1, x: -2, y: -3 } as const;
const P256 = { keyType: 2, algorithm: ES256, curve: 1 } as const;
const ED25519 = { keyType: 1, algorithm: -8, curve: 6 } as const;

/** The types of keys inside security keys. */
const SECURITY_KEY_TYPES: ReadonlySet<string> = new Set([
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
]);

/** Returns true if a key claims to live in a security key. Only an attestation proves the claim. */
export function isSecurityKey({ type }: Pick<SshPublicKey, 'type'>): boolean {
  return SECURITY_KEY_TYPES.has(type);
}

/** The facts about an SSH key that its attestation proves. */
export interface ProvenKey {
  /** The model, as the attestation certificate states it. */
  readonly aaguid: string | null;
  /**
   * True when the security key verified its user at the creation, and will demand that for each
   * signature.
   */
  readonly verifyRequired: boolean;
}

/**
 * Decides whether an attestation file proves that an SSH key lives in a security key of the pinned
 * vendor.
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

  // The file does not name its format. A U2F key has no AAGUID. The signed data of the two formats
  // never begin with the same byte, so that a wrong choice fails.
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
  // A U2F key signs no flags at its registration (WebAuthn §8.6): the client could set any flag.
  return { aaguid: model, verifyRequired: format === 'packed' && demandsVerification(data) };
}

/**
 * Refuses keys of other applications. Such a key is made for another server, which could have
 * chosen this challenge.
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

/** Checks the relying party and the touch. */
function checkFixedPart({ rpIdHash, flags }: AuthenticatorData): void {
  if (!rpIdHash.equals(hash('sha256', APPLICATION, 'buffer'))) {
    throw new Refusal(`The attestation is of another application than "${APPLICATION}".`);
  }
  if ((flags & FLAG.userPresent) === 0) throw new Refusal('The key does not report a touch.');
}

/** Returns the attested credential, whose public key must be the SSH key. */
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

/** Returns the COSE_Key that an SSH key must have in the attested credential. */
function coseOf({ type, blob }: SshPublicKey): Map<number, number | Buffer> {
  const fields = new SshReader(blob);
  fields.name();
  if (type === 'sk-ssh-ed25519@openssh.com') return coseKey(ED25519, fields.string());
  fields.name(); // the curve
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
 * Returns true if the security key signs only after its PIN or fingerprint. The signed data says so
 * twice: by the flag UV, and by the protection that the key set for this credential.
 */
function demandsVerification({ flags, extensions }: AuthenticatorData): boolean {
  const isVerified = (flags & FLAG.userVerified) !== 0;
  return isVerified && extensions.get('credProtect') === VERIFICATION_REQUIRED;
}
