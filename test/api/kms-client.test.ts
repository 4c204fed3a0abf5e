import { createHash, verify } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { kmsAdmin, useMotoCredentials, type KmsAdmin } from '../support/kms.js';
import { startMoto, type Moto } from '../support/moto.js';
import { requires } from '../support/programs.js';

requires('moto').describe('the client of KMS', () => {
  let moto: Moto;
  let admin: KmsAdmin;
  const restore = useMotoCredentials();
  beforeAll(async () => {
    moto = await startMoto();
    admin = await kmsAdmin(moto.endpoint);
  });
  afterAll(async () => {
    await moto.close();
    restore();
  });

  const open = (
    ...keys: readonly (readonly [string, 'ES256' | 'RS256' | 'HMAC' | 'data keys'])[]
  ) =>
    KmsKeys.open({
      kms: {
        keys: keys.map(([keyId, use]) => ({ variable: 'SVC_A_KMS_KEY_ID', keyId, use })),
        endpoint: moto.endpoint,
      },
      upstream: { extraCaCerts: [] },
    });

  it('signs so that Node verifies it by the public key, and never has the private one', async () => {
    const [ec, rsa] = [await admin.create('ECC_NIST_P256'), await admin.create('RSA_3072')];
    const keys = await open([ec, 'ES256'], [rsa, 'RS256']);
    const message = Buffer.from('x'.repeat(5000));
    for (const signer of [keys.signer(ec, 'ES256'), keys.signer(rsa, 'RS256')]) {
      const key = { key: signer.publicKey, dsaEncoding: 'ieee-p1363' } as const;
      expect(signer.publicKey.type).toBe('public');
      expect(verify('sha256', message, key, await signer.sign(message))).toBe(true);
    }
    expect(() => keys.signer(ec, 'RS256', 'Ed25519')).toThrow('does not sign');
  });

  it('gives the same MAC each time, and another one for another key', async () => {
    const [one, other] = [await admin.create('HMAC_256'), await admin.create('HMAC_256')];
    const keys = await open([one, 'HMAC'], [other, 'HMAC']);
    const mac = await keys.generateMac(one, 'a text');
    expect(mac).toHaveLength(32);
    expect(await keys.generateMac(one, 'a text')).toEqual(mac);
    expect(await keys.generateMac(other, 'a text')).not.toEqual(mac);
  });

  it('opens a data key with its own context alone', async () => {
    const id = await admin.create('SYMMETRIC_DEFAULT');
    const keys = await open([id, 'data keys']);
    const { plaintext, encrypted } = await keys.generateDataKey(id, { org: 'a' });
    expect(plaintext).toHaveLength(32);
    expect(encrypted.includes(plaintext)).toBe(false);
    expect(await keys.decryptDataKey(id, encrypted, { org: 'a' })).toEqual(plaintext);
    await expect(keys.decryptDataKey(id, encrypted, { org: 'b' })).rejects.toMatchObject({
      name: 'KmsFault',
      kind: 'input',
    });
    expect(createHash('sha256').update(plaintext).digest()).toHaveLength(32);
  });
});
