import { createPublicKey, hash, verify } from 'node:crypto';
import { FLAG, Refusal } from '@svc/webauthn-policy';
import type { AuthenticationResponse } from './webauthn-json.js';
import type { ClientData } from './client-data.js';

/**
 * The places of the flags and of the counter in authenticator data, behind the hash of the relying
 * party id (WebAuthn §6.1).
 */
const FLAGS_AT = 32;
const COUNTER_AT = 33;

/** The values that an assertion must match, and the stored facts about the key that made it. */
export interface ExpectedAssertion {
  readonly origin: string;
  readonly rpId: string;
  readonly challenge: Buffer;
  readonly credentialId: Buffer;
  /** The public key, as SPKI in PEM. */
  readonly publicKey: string;
  /** The bytes of the owner's user id. */
  readonly userHandle: Buffer | null;
  readonly requireUserVerification: boolean;
}

/**
 * The origin that a native client writes into client data. No browser can write it: `svc-native` is
 * no scheme of a page.
 */
export function nativeOrigin(clientId: string): string {
  return `svc-native:${clientId}`;
}

/**
 * Verifies an assertion that a native client brings (WebAuthn §7.2), since `fido2-lib` takes https
 * origins only. The caller has made the checks that both verifiers share: the client data is JSON
 * and not of a frame in another site, and the authenticator data is complete.
 *
 * @returns the signature counter, which the caller compares, and whether the key verified its user
 * @throws Refusal with the first reason found; Error for a stored key that is not on P-256
 */
export function verifyNativeAssertion(
  { id, response }: AuthenticationResponse,
  clientData: ClientData,
  expected: ExpectedAssertion,
): { readonly signCount: number; readonly userVerified: boolean } {
  // Steps 5 to 7: the credential and its owner.
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
 * Checks steps 10 to 13: the type, the challenge and the origin, and no token binding, which the
 * service does not support.
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
 * Returns true for a `tokenBinding` (WebAuthn Level 1) that says that the client does not use it.
 */
function isUnusedTokenBinding(value: unknown): boolean {
  const isObject = typeof value === 'object' && value !== null && Object.keys(value).length === 1;
  return (
    isObject && 'status' in value && ['supported', 'not-supported'].includes(String(value.status))
  );
}

/**
 * Checks steps 15 to 17: the relying party, the touch, and the PIN or fingerprint if it is
 * required. Returns true if the key verified a PIN or fingerprint.
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
 * Checks steps 19 and 20: the ES256 signature over the authenticator data and the hash of the
 * client data.
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
