import { describe, expect, it } from 'vitest';
import { SoftwareKey } from '../src/software-key/software-key.js';

const ORIGIN = 'https://login.example.com';
const RP_ID = 'login.example.com';
const CHALLENGE = Buffer.alloc(32).toString('base64url');

function creationOptions(excluded: readonly string[] = []) {
  return {
    challenge: CHALLENGE,
    rp: { id: RP_ID },
    user: { id: 'YWRh' },
    pubKeyCredParams: [{ alg: -7 }],
    excludeCredentials: excluded.map((id) => ({ id })),
    authenticatorSelection: { userVerification: 'required' },
  } as const;
}

function requestOptions(rpId = RP_ID) {
  return {
    challenge: CHALLENGE,
    rpId,
    allowCredentials: [],
    userVerification: 'required',
  } as const;
}

describe('the software key', () => {
  it('refuses to enroll twice and to use a credential of another site', () => {
    const key = new SoftwareKey();
    const { id } = key.create(creationOptions(), ORIGIN);
    expect(() => key.create(creationOptions([id]), ORIGIN)).toThrow('InvalidStateError');
    expect(key.get(requestOptions(), ORIGIN).id).toBe(id);
    expect(() => key.get(requestOptions('evil.example'), ORIGIN)).toThrow('NotAllowedError');
  });
});
