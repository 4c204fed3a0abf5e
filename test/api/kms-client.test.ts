import { createHash, verify } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ValidConfig } from '#platform/config/config.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { withRootSecret } from '#platform/kms/root-secret.js';
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

  it('starts with no key that does not fit: one line for each variable, without an ARN', async () => {
    const [ec, p384, rsa2048, disabled, mac, data] = [
      await admin.create('ECC_NIST_P256'),
      await admin.create('ECC_NIST_P384'),
      await admin.create('RSA_2048'),
      await admin.create('ECC_NIST_P256'),
      await admin.create('HMAC_256'),
      await admin.create('SYMMETRIC_DEFAULT'),
    ];
    await admin.disable(disabled);
    const missing = '11111111-2222-3333-4444-555555555555';
    const cases = [
      [missing, 'ES256', 'KMS has no such key in this account and region (NotFoundException)'],
      [disabled, 'ES256', 'the key is not enabled'],
      [p384, 'ES256', 'the key must have the key spec ECC_NIST_P256'],
      [ec, 'RS256', 'the key must have the key spec RSA_3072 or RSA_4096'],
      [rsa2048, 'RS256', 'the key must have the key spec RSA_3072 or RSA_4096'],
      [mac, 'ES256', 'the key must have the usage SIGN_VERIFY'],
      [data, 'HMAC', 'the key must have the usage GENERATE_VERIFY_MAC'],
    ] as const;
    for (const [keyId, use, line] of cases) {
      await expect(open([keyId, use])).rejects.toMatchObject({
        name: 'ConfigProblems',
        problems: [`SVC_A_KMS_KEY_ID: ${line}`],
      });
    }
  });

  it('gives the root secret: the same at each start, and another text for another key', async () => {
    const [one, other] = [await admin.create('HMAC_256'), await admin.create('HMAC_256')];
    const secretOf = async (kmsKeyId: string, previousRoot?: string, previousKmsKeyId?: string) => {
      const secrets = { root: undefined, kmsKeyId, previousRoot, previousKmsKeyId };
      const keys = await open([one, 'HMAC'], [other, 'HMAC']);
      return (await withRootSecret({ secrets } as unknown as ValidConfig, keys)).secrets;
    };
    const { root, previousRoot } = await secretOf(one);
    expect([Buffer.from(root, 'base64url').length, previousRoot]).toEqual([32, undefined]);
    expect(await secretOf(one, 'the text of before')).toEqual({
      root,
      previousRoot: 'the text of before',
    });
    expect(await secretOf(other, undefined, one)).toMatchObject({ previousRoot: root });
  });
});
