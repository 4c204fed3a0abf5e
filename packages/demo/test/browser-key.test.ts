import { describe, expect, it } from 'vitest';
import { SoftwareKey, type SoftwareKeyState } from '@svc/stand-ins/software-key';
import { BrowserKey, SoftwareKeyRefusal } from '../src/browser-key/browser-key.js';

const ORIGIN = 'http://localhost:3000';
const CHALLENGE = Buffer.alloc(32).toString('base64url');
const REQUEST = { challenge: CHALLENGE, rpId: 'localhost', userVerification: 'required' } as const;

/** Returns the options for the registration of a credential, for a user whose id is the number. */
const creation = (user: number) => ({
  challenge: CHALLENGE,
  rp: { id: 'localhost' },
  user: { id: Buffer.from([user]).toString('base64url'), name: `user-${user}@example.com` },
  pubKeyCredParams: [{ type: 'public-key' as const, alg: -7 }],
  excludeCredentials: [],
  authenticatorSelection: { userVerification: 'required' as const },
});

describe('the software key of the pages', () => {
  it('hands its state over after each use, by which a later key continues', () => {
    const states: SoftwareKeyState[] = [];
    const key = new BrowserKey(new SoftwareKey(), ORIGIN, (state) => states.push(state));
    const { id } = key.create(creation(1));
    const later = new BrowserKey(new SoftwareKey({ state: states[0]! }), ORIGIN, () => {});
    expect(later.get({ ...REQUEST, allowCredentials: [] }).id).toBe(id);
    key.get({ ...REQUEST, allowCredentials: [] });
    expect(states.map(({ signCount }) => signCount)).toEqual([1, 2]);
  });

  it('says what to do if it has none of the requested credentials, and keeps its state', () => {
    const key = new BrowserKey(new SoftwareKey(), ORIGIN, () => expect.unreachable());
    const request = { ...REQUEST, allowCredentials: [{ id: 'bm9uZQ' }] };
    expect(() => key.get(request)).toThrow(SoftwareKeyRefusal);
    expect(() => key.get(request)).toThrow(/has no such credential\. Sign in as another user, or/);
  });

  it('offers at most six accounts', () => {
    const key = new BrowserKey(new SoftwareKey(), ORIGIN, () => {});
    for (let user = 0; user < 7; user += 1) key.create(creation(user));
    expect(key.accounts).toHaveLength(6);
  });
});
