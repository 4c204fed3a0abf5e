import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { authenticatorData, coseKey, encodeCbor } from '@svc/stand-ins/authenticator-messages';
import { checkAuthenticatorData, FLAG, readAuthenticatorData } from '@svc/webauthn-policy';
import { AAGUID } from './statements.js';

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const KEY = coseKey(publicKey);
const CREDENTIAL_ID = Buffer.alloc(20, 7);

const length = (bytes: number) => Buffer.of(bytes >> 8, bytes & 0xff);

/** Returns the 37 bytes that all authenticator data begin with. */
const fixed = (flags: number) => authenticatorData('localhost', flags, 1);

interface Parts {
  readonly flags?: number;
  readonly id?: Buffer;
  /** The length of the credential id, as the data state it. */
  readonly stated?: number;
  readonly key?: unknown;
  /** The bytes after the key. */
  readonly rest?: Buffer;
}

/** Builds the authenticator data of a registration. */
function registration({
  flags = FLAG.userPresent | FLAG.credential,
  id = CREDENTIAL_ID,
  stated = id.length,
  key = KEY,
  rest = Buffer.alloc(0),
}: Parts = {}): Buffer {
  return Buffer.concat([fixed(flags), AAGUID, length(stated), id, encodeCbor(key), rest]);
}

describe('authenticator data', () => {
  it('of a registration are read part by part', () => {
    const bytes = registration();
    expect(readAuthenticatorData(bytes, 'registration')).toEqual({
      rpIdHash: bytes.subarray(0, 32),
      flags: FLAG.userPresent | FLAG.credential,
      credential: expect.objectContaining({
        aaguid: AAGUID,
        credentialId: CREDENTIAL_ID,
        key: KEY,
      }),
      extensions: new Map(),
    });
    expect(() => checkAuthenticatorData(bytes, 'registration')).not.toThrow();
  });

  it('of an assertion have no credential', () => {
    const bytes = fixed(FLAG.userPresent);
    expect(readAuthenticatorData(bytes, 'assertion')).toEqual({
      rpIdHash: bytes.subarray(0, 32),
      flags: FLAG.userPresent,
      credential: undefined,
      extensions: new Map(),
    });
  });

  it('are refused if they are shorter than their fixed part', () => {
    const bytes = fixed(FLAG.userPresent).subarray(0, 36);
    expect(() => readAuthenticatorData(bytes, 'assertion')).toThrow(
      'The authenticator data is too short.',
    );
  });

  it.each([
    ['backup eligible', FLAG.backupEligible, 'This passkey can be copied to other devices.'],
    ['backed up', FLAG.backedUp, 'reports a backup of a credential that cannot be backed up.'],
    ['reserved, bit 1', 0x02, 'has a flag that WebAuthn reserves.'],
    ['reserved, bit 5', 0x20, 'has a flag that WebAuthn reserves.'],
  ])('are refused with a flag: %s', (_, flag, message) => {
    const bytes = registration({ flags: FLAG.userPresent | FLAG.credential | flag });
    expect(() => readAuthenticatorData(bytes, 'registration')).toThrow(message);
    expect(() => readAuthenticatorData(fixed(flag), 'assertion')).toThrow(message);
  });

  it('have a credential in a registration, and in no assertion', () => {
    expect(() => readAuthenticatorData(fixed(1), 'registration')).toThrow(
      'must carry a credential in this ceremony.',
    );
    expect(() => readAuthenticatorData(registration(), 'assertion')).toThrow(
      'must not carry a credential in this ceremony.',
    );
  });
});

describe('the credential of a registration', () => {
  const read = (parts: Parts) => () => readAuthenticatorData(registration(parts), 'registration');

  it('is refused if the data end within its header or its id', () => {
    const bytes = registration();
    for (const end of [37 + 17, 37 + 18 + CREDENTIAL_ID.length - 1]) {
      expect(() => readAuthenticatorData(bytes.subarray(0, end), 'registration')).toThrow(
        'The authenticator data is too short.',
      );
    }
  });

  it('has an id of 1 to 1023 bytes', () => {
    expect(read({ id: Buffer.alloc(1, 7) })().credential?.credentialId).toHaveLength(1);
    expect(read({ id: Buffer.alloc(1023, 7) })().credential?.credentialId).toHaveLength(1023);
    for (const bytes of [0, 1024]) {
      expect(read({ id: Buffer.alloc(bytes, 7) })).toThrow('A credential id has 1 to 1023 bytes.');
    }
  });

  it('may have nothing after its id, which leaves it without a key', () => {
    const bytes = registration().subarray(0, 37 + 18 + CREDENTIAL_ID.length);
    expect(readAuthenticatorData(bytes, 'registration').credential?.key).toBeUndefined();
    expect(() => checkAuthenticatorData(bytes, 'registration')).toThrow(
      'The credential has no public key.',
    );
  });
});

describe('the extensions of authenticator data', () => {
  const OUTPUTS = new Map([['credProtect', 2]]);
  const WITH_EXTENSIONS = FLAG.userPresent | FLAG.extensions;
  const assertion = (flags: number, rest: Buffer) => () =>
    readAuthenticatorData(Buffer.concat([fixed(flags), rest]), 'assertion').extensions;

  it('are read by their names, after a credential and without one', () => {
    expect(assertion(WITH_EXTENSIONS, encodeCbor(OUTPUTS))()).toEqual(OUTPUTS);
    const flags = WITH_EXTENSIONS | FLAG.credential;
    const bytes = registration({ flags, rest: encodeCbor(OUTPUTS) });
    const { credential, extensions } = readAuthenticatorData(bytes, 'registration');
    expect(extensions).toEqual(OUTPUTS);
    expect(credential?.key).toEqual(KEY);
  });

  it('are as many as the flags announce', () => {
    const message = 'The authenticator data does not end where its flags say.';
    expect(assertion(FLAG.userPresent, encodeCbor(OUTPUTS))).toThrow(message);
    expect(assertion(WITH_EXTENSIONS, Buffer.alloc(0))).toThrow(message);
    const twice = Buffer.concat([encodeCbor(OUTPUTS), encodeCbor(OUTPUTS)]);
    expect(assertion(WITH_EXTENSIONS, twice)).toThrow(message);
  });

  it('are a map', () => {
    expect(assertion(WITH_EXTENSIONS, encodeCbor(['credProtect']))).toThrow(
      "The authenticator data's extensions are not a map.",
    );
  });
});

describe('the public key of a new credential', () => {
  const check = (key: unknown) => () =>
    checkAuthenticatorData(registration({ key }), 'registration');
  const changed = (label: number, value: unknown) =>
    new Map<number, unknown>([...KEY, [label, value]]);
  const without = (label: number) => new Map([...KEY].filter(([own]) => own !== label));

  it('is a map', () => {
    expect(check([1, 2])).toThrow('The credential has no public key.');
    expect(check('key')).toThrow('The credential has no public key.');
  });

  it.each([
    ['RS256', changed(3, -257)],
    ['EdDSA', changed(3, -8)],
    ['none', without(3)],
  ])('is refused with the algorithm %s', (_, key) => {
    expect(check(key)).toThrow('Only ES256 (-7) credentials are accepted.');
  });

  it.each<[what: string, key: Map<number, unknown>]>([
    ['another type', changed(1, 1)],
    ['no type', without(1)],
    ['another curve', changed(-1, 2)],
    ['no curve', without(-1)],
    ['no x', without(-2)],
    ['no y', without(-3)],
    ['a short x', changed(-2, Buffer.alloc(31))],
    ['a long y', changed(-3, Buffer.alloc(33))],
    ['a text in place of x', changed(-2, 'x'.repeat(32))],
    [
      'a list in place of y',
      changed(
        -3,
        Array.from({ length: 32 }, () => 0),
      ),
    ],
    ['a member too many', changed(2, Buffer.of(1))],
    ['a member in place of another', new Map([...without(-3), [-4, Buffer.alloc(32)]])],
  ])('is refused with %s', (_, key) => {
    expect(check(key)).toThrow("The credential's public key is malformed.");
  });
});
