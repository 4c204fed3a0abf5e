import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { nativeOrigin } from '#domain/keys/authenticators/ceremony/native-assertion.js';
import {
  credentialIdOf,
  type VerifiedAssertion,
} from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import { encodeCbor, FLAG } from '@svc/stand-ins/authenticator-messages';
import {
  assertion,
  ceremonies,
  CHALLENGE,
  USER_HANDLE,
  refusal,
  withFlag,
  type AssertionTampering,
} from '../support/soft-key.js';

const server = ceremonies();

/**
 * The two verifiers of assertions, each with the client data that it accepts. Both get the same
 * vectors and forgeries.
 */
const VERIFIERS = [
  { verifier: 'fido2-lib, of a page', honest: {}, expected: {} },
  {
    verifier: 'our own, of a native client',
    honest: { origin: nativeOrigin('svc-cli') },
    expected: { nativeOrigin: nativeOrigin('svc-cli') },
  },
] as const;
type Verifier = (typeof VERIFIERS)[number];

/**
 * The values of the stored key and the requirements of the server that differ from those of a
 * correct login.
 */
interface Expectation {
  readonly publicKey?: string;
  readonly credentialId?: Buffer;
  readonly userHandle?: Buffer | null;
  readonly requireUserVerification?: boolean;
  readonly nativeOrigin?: string;
}

/** Returns a function that logs in with a tampered assertion, and verifies it by this verifier. */
function logInBy({ honest, expected }: Verifier) {
  return async (
    tampering: AssertionTampering = {},
    expectation: Expectation = {},
  ): Promise<VerifiedAssertion> =>
    server.verifyAssertion({
      ...assertion({ ...tampering, clientData: { ...honest, ...tampering.clientData } }),
      challenge: CHALLENGE,
      userHandle: USER_HANDLE,
      requireUserVerification: true,
      ...expected,
      ...expectation,
    });
}

/** Matches a refusal (`assertion_rejected`) with exactly this reason. */
function refused(detail: unknown): object {
  return refusal(detail, 'assertion_rejected');
}

describe.each(VERIFIERS)('10.1 the assertion ceremony (WebAuthn §7.2) by $verifier', (way) => {
  const logIn = logInBy(way);

  it('accepts an assertion and reports its counter and its user verification', async () => {
    await expect(logIn({ signCount: 5 })).resolves.toEqual({ signCount: 5, userVerified: true });
  });

  it.each([0, 1, 0xffff_ffff])('reports the counter %i, which SQL compares', async (signCount) => {
    await expect(logIn({ signCount })).resolves.toMatchObject({ signCount });
  });

  it('accepts user presence alone only where user verification is not required, and reports it', async () => {
    const tampering = { flags: FLAG.userPresent };
    await expect(logIn(tampering)).rejects.toMatchObject(
      refused('The key did not verify its user.'),
    );
    await expect(logIn(tampering, { requireUserVerification: false })).resolves.toMatchObject({
      userVerified: false,
    });
  });

  it.each([true, false])(
    'refuses a missing touch (user verification required: %s)',
    async (demanded) => {
      const attempt = logIn({ flags: FLAG.userVerified }, { requireUserVerification: demanded });
      await expect(attempt).rejects.toMatchObject(refused('The key does not report a touch.'));
    },
  );

  it.each([
    [
      'type',
      { clientData: { type: 'webauthn.create' } },
      'The response belongs to the other ceremony.',
    ],
    ['challenge', { clientData: { challenge: 'AAAA' } }, 'The response answers another challenge.'],
    [
      'origin',
      { clientData: { origin: 'https://evil.example' } },
      'The response was made for another origin.',
    ],
    [
      'origin, a missing one',
      { clientData: { origin: undefined } },
      'The response was made for another origin.',
    ],
    ['relying party', { rpId: 'evil.example' }, 'The response was made for another relying party.'],
    [
      'frame',
      { clientData: { crossOrigin: true } },
      'The ceremony ran inside a page of another origin.',
    ],
    [
      'frame, named at its top',
      { clientData: { topOrigin: 'https://evil.example' } },
      'The ceremony ran inside a page of another origin.',
    ],
    ['user', { userHandle: Buffer.from('somebody else') }, 'The response is of another user.'],
  ])('refuses a response of another %s', async (_, tampering, reason) => {
    await expect(logIn(tampering)).rejects.toMatchObject(refused(reason));
  });

  it('accepts a response without a user handle, and refuses one with a user handle where none is expected', async () => {
    await expect(logIn({ userHandle: null })).resolves.toMatchObject({ userVerified: true });
    await expect(logIn({}, { userHandle: null })).rejects.toMatchObject(
      refused('The response is of another user.'),
    );
  });

  it('refuses the credential of another key', async () => {
    const credentialId = Buffer.alloc(32, 0x2e);
    await expect(logIn({}, { credentialId })).rejects.toMatchObject(
      refused('The response is of another credential.'),
    );
  });

  it('refuses a signature by another key', async () => {
    const { publicKey } = assertion();
    await expect(logIn({}, { publicKey })).rejects.toMatchObject(
      refused('The signature does not verify.'),
    );
  });

  it.each([
    ['zeros', () => Buffer.alloc(70)],
    ['a single byte', () => Buffer.of(0x30)],
    ['the half of it', (honest: Buffer) => honest.subarray(0, 35)],
    ['r = s = 0 in DER', () => Buffer.from('3006020100020100', 'hex')],
  ])('refuses %s as a signature', async (_, signature) => {
    await expect(logIn({ signature })).rejects.toMatchObject(
      refused('The signature does not verify.'),
    );
  });

  const ends = 'The authenticator data does not end where its flags say.';
  it.each([
    ['trailing bytes', (data: Buffer) => Buffer.concat([data, Buffer.of(0)]), ends],
    [
      'extensions no flag announces',
      (data: Buffer) => Buffer.concat([data, encodeCbor(new Map())]),
      ends,
    ],
    ['announced extensions missing', (data: Buffer) => withFlag(data, 0x80), ends],
    [
      'a flag that announces a credential',
      (data: Buffer) => withFlag(data, FLAG.credential),
      'The authenticator data must not carry a credential in this ceremony.',
    ],
  ])(
    'refuses authenticator data with %s, though the key signed it',
    async (_, authData, reason) => {
      await expect(logIn({ authData })).rejects.toMatchObject(refused(reason));
    },
  );

  const BASE = FLAG.userPresent | FLAG.userVerified;
  it.each([
    ['can be backed up (BE)', BASE | 0x08],
    ['is backed up (BE and BS)', BASE | 0x18],
    ['is backed up and cannot be (BS alone)', BASE | 0x10],
    ['has the reserved bit 1', BASE | 0x02],
    ['has the reserved bit 5', BASE | 0x20],
  ])('10.9 refuses an enrolled key that now reports that it %s', async (_, flags) => {
    await expect(logIn({ flags })).rejects.toMatchObject(refused(expect.any(String)));
  });

  it.each([{ status: 'present', id: 'AAAA' }, { status: 'other' }, {}, 'supported', null])(
    '10.1 refuses token binding other than an unused one: %o',
    async (tokenBinding) => {
      await expect(logIn({ clientData: { tokenBinding } })).rejects.toMatchObject(
        refused('The response is malformed.'),
      );
    },
  );

  it('10.1 accepts token binding that was not used', async () => {
    const clientData = { tokenBinding: { status: 'supported' } };
    await expect(logIn({ clientData })).resolves.toMatchObject({ userVerified: true });
  });

  it('accepts extension outputs that the flags announce', async () => {
    await expect(logIn({ authData: withExtension })).resolves.toMatchObject({ userVerified: true });
  });
});

describe.each(VERIFIERS)('10.1 hostile assertions, verified by $verifier', (way) => {
  const logIn = logInBy(way);
  const { credential, credentialId, publicKey } = assertion({ clientData: way.honest });
  const verify = (different: object) =>
    server.verifyAssertion({
      credential: { ...credential, response: { ...credential.response, ...different } },
      challenge: CHALLENGE,
      publicKey,
      credentialId,
      userHandle: USER_HANDLE,
      requireUserVerification: true,
      ...way.expected,
    });
  const members = ['clientDataJSON', 'authenticatorData', 'signature'] as const;

  it.each(members)('refuses a genuine one whose %s is cut off after any byte', async (member) => {
    const whole = Buffer.from(credential.response[member], 'base64url');
    for (let length = 0; length < whole.length; length += 1) {
      const cut = whole.subarray(0, length).toString('base64url');
      await expect(verify({ [member]: cut })).rejects.toMatchObject(
        refused(expect.stringMatching(/./)),
      );
    }
  });

  it.each(members.slice(0, 2))(
    'refuses a genuine one with any bit of its %s flipped',
    async (member) => {
      const whole = Buffer.from(credential.response[member], 'base64url');
      for (let bit = 0; bit < whole.length * 8; bit += 1) {
        const flipped = Buffer.from(whole);
        flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
        await expect(verify({ [member]: flipped.toString('base64url') })).rejects.toMatchObject(
          refused(expect.stringMatching(/./)),
        );
      }
    },
  );

  it('refuses a malformed stored key, with no further detail', async () => {
    const pem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' });
    await expect(logIn({}, { publicKey: pem.toString() })).rejects.toMatchObject(
      refused('The response is malformed.'),
    );
  });
});

describe('10.1 the origin of a native client', () => {
  const forNative = { nativeOrigin: nativeOrigin('svc-cli') };
  const [page] = VERIFIERS;

  it.each([
    ['a page on the parent domain', 'https://localhost'],
    ['a page of ours', 'http://localhost:3000'],
    ['a page without an origin', 'null'],
    ['another native client', nativeOrigin('another')],
    ['a name that ends otherwise', `${nativeOrigin('svc-cli')}/`],
    ['another spelling', 'SVC-NATIVE:svc-cli'],
    ['a list of origins', [nativeOrigin('svc-cli')]],
  ])('is refused for %s', async (_, origin) => {
    await expect(logInBy(page)({ clientData: { origin } }, forNative)).rejects.toMatchObject(
      refused('The response was made for another origin.'),
    );
  });

  it('is refused on a page', async () => {
    const clientData = { origin: nativeOrigin('svc-cli') };
    await expect(logInBy(page)({ clientData })).rejects.toMatchObject(
      refused('The response was made for another origin.'),
    );
  });
});

describe('credentialIdOf', () => {
  it('reads the credential id', () => {
    expect(credentialIdOf(assertion().credential)).toEqual(Buffer.alloc(32, 0x1d));
  });

  it.each([undefined, null, 7, 'id', [], {}, { ...assertion().credential, rawId: 'AAAA' }])(
    'refuses %o',
    (credential) => {
      expect(() => credentialIdOf(credential)).toThrow(/^assertion_rejected: credential/);
    },
  );
});

describe('the options of a ceremony', () => {
  it('10.24 asks a registration for a roaming key, direct attestation, ES256 and only what a U2F key supports', () => {
    const options = server.creationOptions({
      challenge: CHALLENGE,
      user: { id: USER_HANDLE, name: 'ada@example.com', displayName: 'Ada' },
      excludeCredentialIds: [Buffer.from('old key')],
    });
    expect(options).toEqual({
      rp: { id: 'localhost', name: 'svc' },
      user: {
        id: USER_HANDLE.toString('base64url'),
        name: 'ada@example.com',
        displayName: 'Ada',
      },
      challenge: CHALLENGE.toString('base64url'),
      pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
      timeout: 270_000, // less than the state lives
      excludeCredentials: [
        { type: 'public-key', id: Buffer.from('old key').toString('base64url') },
      ],
      authenticatorSelection: {
        authenticatorAttachment: 'cross-platform',
        residentKey: 'preferred',
        requireResidentKey: false,
        userVerification: 'preferred',
      },
      attestation: 'direct',
      hints: ['security-key'],
    });
  });

  it('10.24 lists no credential in a request by default', () => {
    const request = { challenge: CHALLENGE, userVerification: 'required' } as const;
    expect(server.requestOptions(request)).toEqual({
      challenge: CHALLENGE.toString('base64url'),
      timeout: 270_000,
      rpId: 'localhost',
      allowCredentials: [],
      userVerification: 'required',
      hints: ['security-key'],
    });
    const allowCredentials = [{ id: Buffer.from('key'), transports: ['usb'] }];
    expect(server.requestOptions({ ...request, allowCredentials }).allowCredentials).toEqual([
      { type: 'public-key', id: Buffer.from('key').toString('base64url'), transports: ['usb'] },
    ]);
  });
});

function withExtension(authData: Buffer): Buffer {
  return Buffer.concat([withFlag(authData, 0x80), encodeCbor(new Map([['appid', true]]))]);
}
