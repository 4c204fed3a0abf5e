import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { coseKey, encodeCbor, FLAG } from '@svc/stand-ins/authenticator-messages';
import {
  AAGUID,
  ceremonies,
  CHALLENGE,
  NOW,
  refusal,
  register,
  registration,
  withFlag,
} from '../support/soft-key.js';

/** The offset of the credential id's length in the authenticator data of the test key. */
const ID_LENGTH_AT = 53;
const COSE_KEY_AT = 37 + 18 + 32;

/** Reasons that several tests expect. */
const MALFORMED_CBOR = 'The response contains malformed CBOR.';
const NOT_CANONICAL = 'The response contains CBOR that is not in its canonical form.';
const NOT_WHOLE = 'The attestation object is not made of fmt, attStmt and authData.';

describe('the registration ceremony (WebAuthn §7.1)', () => {
  it.each([
    [
      'type',
      { clientData: { type: 'webauthn.get' } },
      'The response belongs to the other ceremony.',
    ],
    ['challenge', { clientData: { challenge: 'AAAA' } }, 'The response answers another challenge.'],
    [
      'origin',
      { clientData: { origin: 'https://evil.example' } },
      'The response was made for another origin.',
    ],
    [
      'port of the origin',
      { clientData: { origin: 'http://localhost:3001' } },
      'The response was made for another origin.',
    ],
    [
      'spelling of the origin',
      { clientData: { origin: 'http://localhost:3000/' } },
      'The response was made for another origin.',
    ],
    ['relying party', { rpId: 'evil.example' }, 'The response was made for another relying party.'],
    [
      'frame',
      { clientData: { crossOrigin: true } },
      'The ceremony ran inside a page of another origin.',
    ],
  ])('refuses a response of another %s', async (_, tampering, reason) => {
    await expect(register(tampering)).rejects.toMatchObject(refusal(reason));
  });

  it('refuses a response without user presence, even one with user verification', async () => {
    await expect(register({ flags: 0 })).rejects.toMatchObject(
      refusal('The key does not report a touch.'),
    );
    await expect(register({ flags: FLAG.userVerified })).rejects.toMatchObject(
      refusal('The key does not report a touch.'),
    );
  });

  it.each([
    ['can be backed up (BE)', 0x08],
    ['is backed up (BE and BS)', 0x18],
    ['is backed up and cannot be (BS alone)', 0x10],
    ['has the reserved bit 1', 0x02],
    ['has the reserved bit 5', 0x20],
  ])('10.9 refuses a credential that %s, of either format', async (_, flag) => {
    for (const format of ['packed', 'fido-u2f'] as const) {
      await expect(register({ format, flags: FLAG.userPresent | flag })).rejects.toMatchObject(
        refusal(expect.any(String)),
      );
    }
  });

  it.each([-8, -35, -257, -48, -9])('refuses a credential of the algorithm %i', async (alg) => {
    const withAlgorithm = (authData: Buffer) =>
      Buffer.concat([
        authData.subarray(0, COSE_KEY_AT),
        encodeCbor(
          new Map([
            [1, 2],
            [3, alg],
          ]),
        ),
      ]);
    await expect(register({ authData: withAlgorithm })).rejects.toMatchObject(
      refusal('Only ES256 (-7) credentials are accepted.'),
    );
  });

  it.each([
    ['on another curve', -1, 2],
    ['of another type', 1, 3],
    ['with a short coordinate', -2, Buffer.alloc(31)],
    ['with a private part', -4, Buffer.alloc(32)],
  ])('refuses a credential key %s', async (_, label, value) => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const key = coseKey(publicKey).set(label, value);
    const withKey = (authData: Buffer) =>
      Buffer.concat([authData.subarray(0, COSE_KEY_AT), encodeCbor(key)]);
    await expect(register({ authData: withKey })).rejects.toMatchObject(
      refusal("The credential's public key is malformed."),
    );
  });

  it('refuses a credential key that is not a point of the curve', async () => {
    await expect(register({ authData: offTheCurve })).rejects.toMatchObject(
      refusal('The response is malformed.'),
    );
  });

  it('accepts extension outputs that the flags announce', async () => {
    await expect(register({ authData: withExtension })).resolves.toMatchObject({ aaguid: AAGUID });
  });

  const ends = 'The authenticator data does not end where its flags say.';
  it.each([
    [
      'extensions that no flag announces',
      (data: Buffer) => Buffer.concat([data, encodeCbor(new Map())]),
      ends,
    ],
    ['announced extensions missing', (data: Buffer) => withFlag(data, 0x80), ends],
    ['trailing zeros', (data: Buffer) => Buffer.concat([data, Buffer.alloc(3)]), ends],
    [
      'extensions that are not a map',
      (data: Buffer) => Buffer.concat([withFlag(data, 0x80), Buffer.of(1)]),
      "The authenticator data's extensions are not a map.",
    ],
    [
      'half a CBOR item after it',
      (data: Buffer) => Buffer.concat([data, Buffer.of(0xa1)]),
      MALFORMED_CBOR,
    ],
    [
      'no credential in it',
      (data: Buffer) => withoutFlag(data, FLAG.credential),
      'The authenticator data must carry a credential in this ceremony.',
    ],
    [
      'an empty credential id',
      (data: Buffer) => withIdLength(data, 0),
      'A credential id has 1 to 1023 bytes.',
    ],
    [
      'a credential id of 1024 bytes',
      (data: Buffer) => withIdLength(data, 1024),
      'A credential id has 1 to 1023 bytes.',
    ],
    [
      'a credential id longer than itself',
      (data: Buffer) => withIdLength(data, 1000),
      'The authenticator data is too short.',
    ],
    [
      'only its fixed part',
      (data: Buffer) => data.subarray(0, 37),
      'The authenticator data is too short.',
    ],
  ])('refuses authenticator data with %s', async (_, authData, reason) => {
    await expect(register({ authData })).rejects.toMatchObject(refusal(reason));
  });

  it.each([
    [
      'trailing bytes',
      (object: Buffer) => Buffer.concat([object, Buffer.of(0)]),
      'The attestation object has trailing bytes.',
    ],
    [
      'a key that stands twice',
      (object: Buffer) =>
        Buffer.concat([
          Buffer.of(0xa4),
          object.subarray(1),
          encodeCbor('fmt'),
          encodeCbor('packed'),
        ]),
      NOT_CANONICAL,
    ],
    [
      'a member of no meaning',
      (object: Buffer) =>
        Buffer.concat([Buffer.of(0xa4), object.subarray(1), encodeCbor('x'), encodeCbor(1)]),
      NOT_WHOLE,
    ],
    [
      'an indefinite length',
      (object: Buffer) => Buffer.concat([Buffer.of(0xbf), object.subarray(1), Buffer.of(0xff)]),
      NOT_CANONICAL,
    ],
    ['the length of 4 GiB', () => Buffer.from('5affffffff00', 'hex'), MALFORMED_CBOR],
    ['a map of 2^64 entries', () => Buffer.from('bbffffffffffffffff', 'hex'), MALFORMED_CBOR],
    ['10,000 nested arrays', () => Buffer.alloc(10_000, 0x81), MALFORMED_CBOR],
    ['another type', () => encodeCbor([1, 2, 3]), NOT_WHOLE],
  ])('refuses an attestation object with %s', async (_, attestationObject, reason) => {
    await expect(register({ attestationObject })).rejects.toMatchObject(refusal(reason));
  });

  it('refuses a response whose id, rawId and attested credential id differ', async () => {
    const { credential, rootPem } = registration();
    const server = ceremonies({ roots: [rootPem] });
    const verify = (different: object) =>
      server.verifyRegistration({
        credential: { ...credential, ...different },
        challenge: CHALLENGE,
        now: NOW,
      });
    await expect(verify({ id: 'AAAA' })).rejects.toMatchObject(
      refusal(expect.stringMatching(/id and rawId must be the same/)),
    );
    await expect(verify({ id: 'AAAA', rawId: 'AAAA' })).rejects.toMatchObject(
      refusal('The credential id is not the one in the authenticator data.'),
    );
    await expect(verify({ id: '', rawId: '' })).rejects.toMatchObject(
      refusal(expect.stringMatching(/credential\.id is malformed/)),
    );
    const tooLong = Buffer.alloc(1024).toString('base64url');
    await expect(verify({ id: tooLong, rawId: tooLong })).rejects.toMatchObject(
      refusal(expect.stringMatching(/credential\.id is malformed/)),
    );
  });
});

describe('hostile registrations', () => {
  it('refuses a genuine one cut off after any byte', async () => {
    const { credential, rootPem } = registration();
    const server = ceremonies({ roots: [rootPem] });
    for (const member of ['attestationObject', 'clientDataJSON'] as const) {
      const whole = Buffer.from(credential.response[member], 'base64url');
      for (let length = 0; length < whole.length; length += 1) {
        const cut = {
          ...credential.response,
          [member]: whole.subarray(0, length).toString('base64url'),
        };
        const attempt = server.verifyRegistration({
          credential: { ...credential, response: cut },
          challenge: CHALLENGE,
          now: NOW,
        });
        await expect(attempt).rejects.toMatchObject(refusal(expect.stringMatching(/./)));
      }
    }
  });

  it.each(['packed', 'fido-u2f'] as const)(
    'refuses a genuine %s one with any bit flipped',
    async (format) => {
      const { credential, rootPem } = registration({ format });
      const server = ceremonies({ roots: [rootPem] });
      const whole = Buffer.from(credential.response.attestationObject, 'base64url');
      // U2F signs neither the AAGUID nor the flags nor the counter, so the test leaves these 21
      // bytes out.
      const unsigned = format === 'fido-u2f' ? whole.indexOf('authData') + 8 + 2 + 32 : Infinity;
      for (let at = 0; at < whole.length; at += 1) {
        if (at >= unsigned && at < unsigned + 21) continue;
        const flipped = Buffer.from(whole);
        flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (at % 8)), at);
        const attestationObject = flipped.toString('base64url');
        const attempt = server.verifyRegistration({
          credential: { ...credential, response: { ...credential.response, attestationObject } },
          challenge: CHALLENGE,
          now: NOW,
        });
        await expect(attempt).rejects.toMatchObject(refusal(expect.stringMatching(/./)));
      }
    },
  );

  const genuine = registration().credential;
  const withResponse = (different: object) => ({
    ...genuine,
    response: { ...genuine.response, ...different },
  });
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a number', 0],
    ['a string', 'credential'],
    ['a list', []],
    ['an empty object', {}],
    ['an id that is a number', { ...genuine, id: 1 }],
    ['another type of credential', { ...genuine, type: 'password' }],
    ['no response', { ...genuine, response: null }],
    ['transports that are no list', withResponse({ transports: 'usb' })],
    ['client data that is JSON null', withResponse({ clientDataJSON: 'bnVsbA' })],
    ['client data that is not UTF-8', withResponse({ clientDataJSON: '_w' })],
    ['base64url padded too much', withResponse({ clientDataJSON: 'e30==' })],
    ['base64 of the other alphabet', withResponse({ clientDataJSON: '+w==' })],
    ['a megabyte', withResponse({ attestationObject: 'A'.repeat(1_000_000) })],
  ])('refuses %s and does not crash', async (_, credential) => {
    const attempt = ceremonies().verifyRegistration({ credential, challenge: CHALLENGE, now: NOW });
    await expect(attempt).rejects.toMatchObject(
      refusal(expect.stringMatching(/malformed|client data/)),
    );
  });

  it('accepts base64url with the padding that older clients send', async () => {
    const { credential, rootPem } = registration();
    const padded = (text: string) => text + '='.repeat((4 - (text.length % 4)) % 4);
    const id = padded(credential.id);
    const response = {
      ...credential.response,
      clientDataJSON: padded(credential.response.clientDataJSON),
      attestationObject: padded(credential.response.attestationObject),
    };
    const attempt = ceremonies({ roots: [rootPem] }).verifyRegistration({
      credential: { ...credential, id, rawId: id, response },
      challenge: CHALLENGE,
      now: NOW,
    });
    await expect(attempt).resolves.toMatchObject({ attestation: 'packed' });
  });

  it('keeps only the transports that WebAuthn defines', async () => {
    const { credential, rootPem } = registration();
    const response = { ...credential.response, transports: ['usb', 'telepathy', 'usb'] };
    const server = ceremonies({ roots: [rootPem] });
    await expect(
      server.verifyRegistration({
        credential: { ...credential, response },
        challenge: CHALLENGE,
        now: NOW,
      }),
    ).resolves.toMatchObject({ transports: ['usb'] });
  });
});

function withoutFlag(authData: Buffer, flag: number): Buffer {
  authData.writeUInt8(authData.readUInt8(32) & ~flag, 32);
  return authData;
}

function withIdLength(authData: Buffer, length: number): Buffer {
  authData.writeUInt16BE(length, ID_LENGTH_AT);
  return authData;
}

function offTheCurve(authData: Buffer): Buffer {
  return Buffer.concat([authData.subarray(0, -1), Buffer.of(authData.at(-1)! ^ 1)]);
}

function withExtension(authData: Buffer): Buffer {
  return Buffer.concat([withFlag(authData, 0x80), encodeCbor(new Map([['credProtect', 2]]))]);
}
