import { createPublicKey, hash, verify } from 'node:crypto';
import { FLAG, Refusal } from '@svc/webauthn-policy';
import type { AuthenticationResponse } from './webauthn-json.js';
import type { ClientData } from './client-data.js';

/**
 * The byte offsets of the flags and of the counter in authenticator data, after the SHA-256 of the
 * relying party id (WebAuthn §6.1).
 */
const FLAGS_AT = 32;
const COUNTER_AT = 33;

/**
 * The values that an assertion (the signature of a security key in a login) must match, and the
 * stored facts of its key.
 */
export interface ExpectedAssertion {
  readonly origin: string;
  readonly rpId: string;
  readonly challenge: Buffer;
  readonly credentialId: Buffer;
  /** The public key in PEM (SPKI). */
  readonly publicKey: string;
  /** The bytes of the user id that is stored in the key. */
  readonly userHandle: Buffer | null;
  readonly requireUserVerification: boolean;
}

/**
 * Returns the origin that a native client such as a command line writes into client data. A browser
 * cannot write this origin, because no page has the scheme `svc-native`.
 */
export function nativeOrigin(clientId: string): string {
  return `svc-native:${clientId}`;
}

/**
 * Verifies an assertion of a native client such as a command line (WebAuthn §7.2), because
 * `fido2-lib` accepts https origins only. The caller has already checked that the authenticator
 * data is complete. The client data is JSON, and the ceremony ran in no frame of another site.
 *
 * @returns the signature counter, which the caller compares, and whether the key verified its user
 * @throws Refusal with the first reason found; Error for a stored key that is not on P-256
 */
export function verifyNativeAssertion(
  { id, response }: AuthenticationResponse,
  clientData: ClientData,
  expected: ExpectedAssertion,
): { readonly signCount: number; readonly userVerified: boolean } {
  // Steps 5 to 7 of WebAuthn §7.2: the credential and its owner.
  if (!id.equals(expected.credentialId)) {
    throw new Refusal('The response is of another credential.');
  }
  const { userHandle } = response;
  if (userHandle?.length && !expected.userHandle?.equals(userHandle)) {
    throw new Refusal('The response is of another user.');
  }
  checkClientData(clientData, expected);
  const { authenticatorData } = response;
  const userVerified = checkFixedPart(authenticatorData, expected);
  checkSignature(response, expected.publicKey);
  return { signCount: authenticatorData.readUInt32BE(COUNTER_AT), userVerified };
}

/**
 * Checks steps 11 to 14 of WebAuthn Level 2 §7.2: the type, the challenge, the origin and the token
 * binding. It refuses the use of token binding, because the service does not support it.
 */
function checkClientData(
  { type, challenge, origin, tokenBinding }: ClientData,
  expected: ExpectedAssertion,
): void {
  if (type !== 'webauthn.get') throw new Refusal('The response belongs to the other ceremony.');
  if (challenge !== expected.challenge.toString('base64url')) {
    throw new Refusal('The response answers another challenge.');
  }
  if (origin !== expected.origin) throw new Refusal('The response was made for another origin.');
  if (tokenBinding !== undefined && !isUnusedTokenBinding(tokenBinding)) {
    throw new Refusal('The response is malformed.');
  }
}

/**
 * Returns true for a member `tokenBinding` (WebAuthn Level 1) that says that no token binding is
 * used.
 */
function isUnusedTokenBinding(value: unknown): boolean {
  const isObject = typeof value === 'object' && value !== null && Object.keys(value).length === 1;
  return (
    isObject && 'status' in value && ['supported', 'not-supported'].includes(String(value.status))
  );
}

/**
 * Checks steps 15 to 17 of WebAuthn §7.2: the relying party, the touch, and the PIN or fingerprint
 * if it is required. Returns true if the key verified a PIN or fingerprint.
 */
function checkFixedPart(authenticatorData: Buffer, expected: ExpectedAssertion): boolean {
  const rpIdHash = authenticatorData.subarray(0, FLAGS_AT);
  if (!rpIdHash.equals(hash('sha256', expected.rpId, 'buffer'))) {
    throw new Refusal('The response was made for another relying party.');
  }
  const flags = authenticatorData.readUInt8(FLAGS_AT);
  if ((flags & FLAG.userPresent) === 0) throw new Refusal('The key does not report a touch.');
  const userVerified = (flags & FLAG.userVerified) !== 0;
  if (expected.requireUserVerification && !userVerified) {
    throw new Refusal('The key did not verify its user.');
  }
  return userVerified;
}

/**
 * Checks steps 19 and 20 of WebAuthn §7.2: the ES256 signature over the authenticator data and the
 * hash of the client data.
 */
function checkSignature(
  { authenticatorData, clientDataJSON, signature }: AuthenticationResponse['response'],
  publicKey: string,
): void {
  const key = createPublicKey(publicKey);
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new Error('the stored key is not on P-256');
  }
  const signed = Buffer.concat([authenticatorData, hash('sha256', clientDataJSON, 'buffer')]);
  if (!verify('sha256', signed, key, signature)) {
    throw new Refusal('The signature does not verify.');
  }
}
