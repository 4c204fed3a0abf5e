import { describe, expect, it } from 'vitest';
import { credentialIdOf } from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { ceremonies, CHALLENGE, NOW, ORIGIN, USER_HANDLE } from '../../support/soft-key.js';

const user = { id: USER_HANDLE, name: 'ada@example.com', displayName: 'Ada' };

/** Enrolls a new software key at a server that trusts the key's attestation root. */
async function enroll(format: 'packed' | 'fido-u2f') {
  const key = new SoftwareKey({ format, now: NOW });
  const server = ceremonies({ roots: [key.rootPem] });
  const creation = server.creationOptions({ challenge: CHALLENGE, user, excludeCredentialIds: [] });
  const credential = key.create(creation, ORIGIN);
  const stored = await server.verifyRegistration({ credential, challenge: CHALLENGE, now: NOW });
  return { key, server, stored };
}

describe('the software key', () => {
  it('enrolls with its PIN and logs in without a name', async () => {
    const { key, server, stored } = await enroll('packed');
    expect(stored).toMatchObject({ attestation: 'packed', userVerified: true, signCount: 1 });
    const request = server.requestOptions({ challenge: CHALLENGE, userVerification: 'required' });
    const credential = key.get(request, ORIGIN);
    expect(credentialIdOf(credential)).toEqual(stored.credentialId);
    await expect(
      server.verifyAssertion({
        ...stored,
        credential,
        challenge: CHALLENGE,
        userHandle: USER_HANDLE,
        requireUserVerification: true,
      }),
    ).resolves.toEqual({ signCount: 2, userVerified: true });
  });

  it('has no PIN as a U2F key and needs a credential id to log in', async () => {
    const { key, server, stored } = await enroll('fido-u2f');
    expect(stored).toMatchObject({ attestation: 'fido-u2f', userVerified: false });
    const request = { challenge: CHALLENGE, userVerification: 'discouraged' } as const;
    expect(() => key.get(server.requestOptions(request), ORIGIN)).toThrow('NotAllowedError');
    const allowCredentials = [{ id: stored.credentialId, transports: stored.transports }];
    const credential = key.get(server.requestOptions({ ...request, allowCredentials }), ORIGIN);
    expect(credential.response.userHandle).toBeUndefined();
    await expect(
      server.verifyAssertion({
        ...stored,
        credential,
        challenge: CHALLENGE,
        userHandle: USER_HANDLE,
        requireUserVerification: false,
      }),
    ).resolves.toEqual({ signCount: 2, userVerified: false });
  });

  it('is refused by a server that does not trust its root', async () => {
    const { key } = await enroll('packed');
    const stranger = ceremonies({ roots: [new SoftwareKey({ now: NOW }).rootPem] });
    const creation = stranger.creationOptions({
      challenge: CHALLENGE,
      user,
      excludeCredentialIds: [],
    });
    const credential = key.create(creation, ORIGIN);
    await expect(
      stranger.verifyRegistration({ credential, challenge: CHALLENGE, now: NOW }),
    ).rejects.toMatchObject({ code: 'attestation_rejected' });
  });
});
