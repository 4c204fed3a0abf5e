import { generateKeyPairSync } from 'node:crypto';
import { jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { appJwtSigner } from '../../../../../src/domain/github/app/app-jwt.js';
import { TestClock } from '../../../../support/test-clock.js';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const appKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

describe('the JWT of the GitHub App', () => {
  it('names the App, is signed by RS256, begins 30 seconds ago and lives 10 minutes', async () => {
    const clock = new TestClock();
    const jwt = await appJwtSigner({ appId: '12', appKey }, clock)();
    const { payload, protectedHeader } = await jwtVerify(jwt, publicKey, {
      algorithms: ['RS256'],
      currentDate: clock.now(),
    });
    const now = clock.seconds();
    expect(protectedHeader).toEqual({ alg: 'RS256', typ: 'JWT' });
    expect(payload).toEqual({ iss: '12', iat: now - 30, exp: now + 570 });
  });

  it('is signed for each request, by the time of the request', async () => {
    const clock = new TestClock();
    const sign = appJwtSigner({ appId: '12', appKey }, clock);
    const first = await sign();
    clock.advance(1000);
    expect(await sign()).not.toBe(first);
  });

  it('is refused for a key that is none, before the first request', () => {
    expect(() => appJwtSigner({ appId: '12', appKey: 'planted' }, new TestClock())).toThrow(
      /DECODER/,
    );
  });
});
