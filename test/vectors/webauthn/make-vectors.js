// Makes the golden ceremonies beside this file, with the software key:
// `npm run build && node test/vectors/webauthn/make-vectors.js`. Keys and signatures are new each
// time; the clock, the challenges and the model stand still.
import { writeFileSync } from 'node:fs';
import { SoftwareKey } from '@svc/stand-ins/software-key';

const origin = 'https://login.example.com';
const rpId = 'login.example.com';
const now = '2026-01-15T12:00:00.000Z';
const userHandle = Buffer.from('0199d0c6-7c1e-7000-8000-000000000001').toString('base64url');
const registrationChallenge = Buffer.alloc(32, 1).toString('base64url');
const assertionChallenge = Buffer.alloc(32, 2).toString('base64url');

for (const format of ['packed', 'fido-u2f']) {
  const key = new SoftwareKey({ format, now: new Date(now) });
  const registration = key.create(
    {
      rp: { id: rpId, name: 'svc' },
      user: { id: userHandle, name: 'ada@example.com', displayName: 'Ada' },
      challenge: registrationChallenge,
      pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
      timeout: 300_000,
      excludeCredentials: [],
      authenticatorSelection: {
        residentKey: 'preferred',
        requireResidentKey: false,
        userVerification: 'preferred',
      },
      attestation: 'direct',
    },
    origin,
  );
  const assertion = key.get(
    {
      challenge: assertionChallenge,
      timeout: 300_000,
      rpId,
      allowCredentials: [{ type: 'public-key', id: registration.id }],
      userVerification: 'preferred',
    },
    origin,
  );
  const vector = {
    origin,
    rpId,
    now,
    userHandle,
    rootPem: key.rootPem,
    registrationChallenge,
    registration,
    assertionChallenge,
    assertion,
  };
  writeFileSync(new URL(`${format}.json`, import.meta.url), `${JSON.stringify(vector, null, 2)}\n`);
}
