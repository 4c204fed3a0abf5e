import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ceremonies } from '../support/soft-key.js';

const bytes = z.string().transform((text) => Buffer.from(text, 'base64url'));
const VECTOR = z.object({
  origin: z.string(),
  rpId: z.string(),
  now: z.coerce.date(),
  userHandle: bytes,
  rootPem: z.string(),
  registrationChallenge: bytes,
  registration: z.unknown(),
  assertionChallenge: bytes,
  assertion: z.unknown(),
});

describe('the golden ceremonies of test/vectors/webauthn', () => {
  it.each([
    ['packed', true],
    ['fido-u2f', false],
  ])('10.1 %s is accepted by both verifiers', async (format, verifiesUser) => {
    const file = new URL(`../vectors/webauthn/${format}.json`, import.meta.url);
    const vector = VECTOR.parse(JSON.parse(readFileSync(file, 'utf8')));
    const server = ceremonies({
      roots: [vector.rootPem],
      origin: vector.origin,
      rpId: vector.rpId,
    });
    const registered = await server.verifyRegistration({
      credential: vector.registration,
      challenge: vector.registrationChallenge,
      now: vector.now,
    });
    expect(registered).toMatchObject({
      attestation: format,
      aaguid: 'c0ffee00-5f70-4a7e-8e1d-50f7a4e0ce01',
      signCount: 1,
      userVerified: verifiesUser,
    });
    const ceremony = {
      ...registered,
      credential: vector.assertion,
      challenge: vector.assertionChallenge,
      userHandle: vector.userHandle,
      requireUserVerification: verifiesUser,
    };
    // 10.1: verifies by fido2-lib, and by the service's own verifier, which compares origins
    // exactly.
    for (const way of [{}, { nativeOrigin: vector.origin }]) {
      await expect(server.verifyAssertion({ ...ceremony, ...way })).resolves.toEqual({
        signCount: 2,
        userVerified: verifiesUser,
      });
    }
  });
});
