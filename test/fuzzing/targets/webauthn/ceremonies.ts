import { readFileSync } from 'node:fs';

/** A WebAuthn registration and an assertion (`assertedData`) that a software key made. */
export interface Ceremony {
  readonly rpId: string;
  readonly now: Date;
  readonly rootPem: string;
  readonly clientDataJSON: Buffer;
  readonly attestationObject: Buffer;
  readonly assertedData: Buffer;
}

interface Vector {
  readonly rpId: string;
  readonly now: string;
  readonly rootPem: string;
  readonly registration: {
    readonly response: { readonly clientDataJSON: string; readonly attestationObject: string };
  };
  readonly assertion: { readonly response: { readonly authenticatorData: string } };
}

export const PACKED = ceremony('packed');
export const FIDO_U2F = ceremony('fido-u2f');

/** Reads the registration and the assertion in a file of `test/vectors/webauthn`. */
function ceremony(format: string): Ceremony {
  const text = readFileSync(`test/vectors/webauthn/${format}.json`, 'utf8');
  const { rpId, now, rootPem, registration, assertion } = JSON.parse(text) as Vector;
  const bytes = (encoded: string) => Buffer.from(encoded, 'base64url');
  return {
    rpId,
    now: new Date(now),
    rootPem,
    clientDataJSON: bytes(registration.response.clientDataJSON),
    attestationObject: bytes(registration.response.attestationObject),
    assertedData: bytes(assertion.response.authenticatorData),
  };
}
