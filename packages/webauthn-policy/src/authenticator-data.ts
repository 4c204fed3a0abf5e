import { ES256 } from './attestation-policy.js';
import { Refusal } from './refusal.js';
import { readCanonicalCbor } from './canonical-cbor.js';

/** The bits in the flags of authenticator data (WebAuthn §6.1). */
export const FLAG = {
  userPresent: 0x01,
  userVerified: 0x04,
  backupEligible: 0x08,
  backedUp: 0x10,
  credential: 0x40,
  extensions: 0x80,
} as const;

/** The bits 1 and 5 of the flags. WebAuthn reserves them, so that they must not be set. */
const RESERVED = 0x22;

/**
 * The number of bytes of the fixed part of authenticator data: rpIdHash (32), flags (1) and
 * signCount (4).
 */
const FIXED_LENGTH = 37;
/** The number of bytes before the credential id: AAGUID (16) and the length of the id (2). */
const ATTESTED_HEADER_LENGTH = 18;
const LONGEST_CREDENTIAL_ID = 1023;

/**
 * The labels of a COSE_Key (RFC 9052 §7.1, RFC 9053 §7.1.1). The constants below are the values of
 * an ES256 key.
 */
const COSE = { keyType: 1, algorithm: 3, curve: -1, x: -2, y: -3 } as const;
const EC2 = 2;
const P256 = 1;

/** The parsed parts of authenticator data (WebAuthn §6.1). */
export interface AuthenticatorData {
  readonly rpIdHash: Buffer;
  readonly flags: number;
  /** The new credential of a registration; undefined for an assertion. */
  readonly credential: AttestedCredentialData | undefined;
  /** The outputs of extensions, by their identifier; empty if there are none. */
  readonly extensions: ReadonlyMap<unknown, unknown>;
}

/** The attested credential data of a registration (WebAuthn §6.5.1). */
export interface AttestedCredentialData {
  readonly aaguid: Buffer;
  readonly credentialId: Buffer;
  /** The public key as a COSE_Key. The parser does not check it; the caller must. */
  readonly key: unknown;
}

/**
 * Checks that authenticator data have exactly the parts that their flags announce (WebAuthn §6.1).
 * The library that parses the same bytes afterwards would ignore unexpected parts.
 *
 * @param bytes the raw authenticator data
 * @param ceremony a registration must have an ES256 credential, an assertion must have none
 * @throws Refusal for any other bytes, and for flags or a credential that the policy does not
 *   accept
 */
export function checkAuthenticatorData(
  bytes: Buffer,
  ceremony: 'registration' | 'assertion',
): void {
  const { credential } = readAuthenticatorData(bytes, ceremony);
  if (credential) checkCredentialKey(credential.key);
}

/**
 * Parses authenticator data. They must have exactly the parts that their flags announce (WebAuthn
 * §6.1).
 *
 * @param bytes the raw authenticator data
 * @param ceremony a registration must have a credential of any kind, an assertion must have none
 * @throws Refusal for any other bytes, and for flags that the policy does not accept
 */
export function readAuthenticatorData(
  bytes: Buffer,
  ceremony: 'registration' | 'assertion',
): AuthenticatorData {
  if (bytes.length < FIXED_LENGTH) throw new Refusal('The authenticator data is too short.');
  const flags = bytes.readUInt8(32);
  checkFlags(flags);
  const hasCredential = (flags & FLAG.credential) !== 0;
  if (hasCredential !== (ceremony === 'registration')) {
    throw new Refusal(
      `The authenticator data must ${hasCredential ? 'not ' : ''}carry a credential in this ceremony.`,
    );
  }
  const header = hasCredential ? readCredentialHeader(bytes.subarray(FIXED_LENGTH)) : undefined;
  const items = readCanonicalCbor(header?.rest ?? bytes.subarray(FIXED_LENGTH));
  const credential = header && { ...header, key: items.shift() };

  const hasExtensions = (flags & FLAG.extensions) !== 0;
  if (items.length !== (hasExtensions ? 1 : 0)) {
    throw new Refusal('The authenticator data does not end where its flags say.');
  }
  const extensions: unknown = hasExtensions ? items[0] : new Map();
  if (!(extensions instanceof Map)) {
    throw new Refusal("The authenticator data's extensions are not a map.");
  }
  return { rpIdHash: bytes.subarray(0, 32), flags, credential, extensions };
}

/**
 * Refuses a credential that can be copied out of its authenticator (NIST SP 800-63B-4 appendix B).
 * Such a credential has the flag BE (backup eligible) or BS (backed up, WebAuthn Level 3 §6.1.3).
 * No hardware key ever sets these flags. A flag that WebAuthn reserves is refused, too.
 */
function checkFlags(flags: number): void {
  if ((flags & FLAG.backupEligible) !== 0) {
    throw new Refusal(
      'This passkey can be copied to other devices. Use a security key, which keeps its credentials.',
    );
  }
  if ((flags & FLAG.backedUp) !== 0) {
    throw new Refusal(
      'The authenticator data reports a backup of a credential that cannot be backed up.',
    );
  }
  if ((flags & RESERVED) !== 0) {
    throw new Refusal('The authenticator data has a flag that WebAuthn reserves.');
  }
}

/**
 * Parses the AAGUID and the credential id. The bytes after them, which begin with the public key,
 * are `rest`.
 */
function readCredentialHeader(attested: Buffer): {
  readonly aaguid: Buffer;
  readonly credentialId: Buffer;
  readonly rest: Buffer;
} {
  if (attested.length < ATTESTED_HEADER_LENGTH) {
    throw new Refusal('The authenticator data is too short.');
  }
  const length = attested.readUInt16BE(16);
  if (length === 0 || length > LONGEST_CREDENTIAL_ID) {
    throw new Refusal('A credential id has 1 to 1023 bytes.');
  }
  if (attested.length < ATTESTED_HEADER_LENGTH + length) {
    throw new Refusal('The authenticator data is too short.');
  }
  const end = ATTESTED_HEADER_LENGTH + length;
  return {
    aaguid: attested.subarray(0, 16),
    credentialId: attested.subarray(ATTESTED_HEADER_LENGTH, end),
    rest: attested.subarray(end),
  };
}

function checkCredentialKey(key: unknown): void {
  if (!(key instanceof Map)) throw new Refusal('The credential has no public key.');
  if (key.get(COSE.algorithm) !== ES256) {
    throw new Refusal(`Only ES256 (${ES256}) credentials are accepted.`);
  }
  const isP256 =
    key.size === 5 &&
    key.get(COSE.keyType) === EC2 &&
    key.get(COSE.curve) === P256 &&
    isCoordinate(key.get(COSE.x)) &&
    isCoordinate(key.get(COSE.y));
  if (!isP256) throw new Refusal("The credential's public key is malformed.");
}

function isCoordinate(value: unknown): boolean {
  return value instanceof Uint8Array && value.length === 32;
}
