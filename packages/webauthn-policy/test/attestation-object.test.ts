import { describe, expect, it } from 'vitest';
import { encodeCbor } from '@svc/stand-ins/authenticator-messages';
import { readAttestationObject } from '@svc/webauthn-policy';

const AUTH_DATA = Buffer.alloc(37, 1);
const STATEMENT = new Map<string, unknown>([['alg', -7]]);
const WHOLE: readonly (readonly [name: string, value: unknown])[] = [
  ['fmt', 'packed'],
  ['attStmt', STATEMENT],
  ['authData', AUTH_DATA],
];
const NOT_WHOLE = 'The attestation object is not made of fmt, attStmt and authData.';

const read = (value: unknown) => () => readAttestationObject(encodeCbor(value));
const changed = (name: string, value: unknown) => new Map([...WHOLE, [name, value]]);

describe('an attestation object', () => {
  it('has a format, a statement and authenticator data', () => {
    expect(read(new Map(WHOLE))()).toEqual({
      format: 'packed',
      statement: STATEMENT,
      authenticatorData: AUTH_DATA,
    });
  });

  it.each(WHOLE)('is refused without %s', (missing) => {
    const rest = WHOLE.filter(([name]) => name !== missing);
    expect(read(new Map(rest))).toThrow(NOT_WHOLE);
    expect(read(new Map([...rest, ['other', 1]]))).toThrow(NOT_WHOLE);
  });

  it.each<[name: string, value: unknown]>([
    ['fmt', 1],
    ['fmt', Buffer.from('packed')],
    ['attStmt', 'statement'],
    ['attStmt', [1]],
    ['authData', 'x'.repeat(37)],
    ['authData', new Map()],
    ['other', 1],
  ])('is refused with another kind of %s: %s', (name, value) => {
    expect(read(changed(name, value))).toThrow(NOT_WHOLE);
  });

  it.each([
    ['a list', [1]],
    ['a text', 'fmt'],
    ['null', null],
  ])('is no %s', (_, value) => {
    expect(read(value)).toThrow(NOT_WHOLE);
  });

  it('is one item of CBOR', () => {
    const whole = encodeCbor(new Map(WHOLE));
    expect(() => readAttestationObject(Buffer.concat([whole, Buffer.of(1)]))).toThrow(
      'The attestation object has trailing bytes.',
    );
    expect(() => readAttestationObject(Buffer.alloc(0))).toThrow(NOT_WHOLE);
  });
});
