import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { kmsAdmin, useMotoCredentials, type KmsAdmin } from '../support/kms.js';
import { startMoto, type Moto } from '../support/moto.js';
import { requires } from '../support/programs.js';
import {
  startReplicatedService,
  type ReplicatedService,
  type Variables,
} from '../support/replicated-service.js';
import { startRotationLoad } from '../support/rotation-load.js';
import '../support/full-scale-only.js';

/** Marks the step that waits until earlier tokens have expired. */
const WAIT = 'wait';

const secretPem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const publicPem = (key: KeyObject) =>
  createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();

requires('moto').describe(
  'the rotation of token-signing keys, with two replicas under load',
  () => {
    let moto: Moto;
    let admin: KmsAdmin;
    let service: ReplicatedService;
    const restore = useMotoCredentials();
    beforeAll(async () => {
      moto = await startMoto();
      admin = await kmsAdmin(moto.endpoint);
    });
    afterEach(() => service.close());
    afterAll(async () => {
      await moto.close();
      restore();
    });

    /**
     * Applies the variables of each step by restarting one replica after the other. Returns the
     * failures of the load.
     */
    async function walk(steps: readonly (Variables | typeof WAIT)[]): Promise<readonly string[]> {
      const inMoto = { AWS_ENDPOINT_URL_KMS: moto.endpoint };
      const [first, ...others] = steps;
      if (first === undefined || first === WAIT) throw new Error('a walk begins with variables');
      const variables = { ...inMoto, ...first };
      service = await startReplicatedService(variables, variables);
      const load = await startRotationLoad(service, 1);
      await load.rounds(1);
      for (const step of others) {
        if (step === WAIT) {
          await load.pause(); // stands for the wait: the earlier tokens have expired
          load.resume();
          continue;
        }
        for (const index of [0, 1]) {
          await service.replace(index, { ...inMoto, ...step });
          await load.rounds(1);
        }
      }
      await load.stop();
      expect(load.done.id_token).toBeGreaterThanOrEqual(steps.length);
      return load.failures;
    }

    it('from PEM keys to PEM keys fails no request and no token', async () => {
      const [ec, nextEc] = ['P-256', 'P-256'].map(
        (namedCurve) => generateKeyPairSync('ec', { namedCurve }).privateKey,
      );
      const [rsa, nextRsa] = [3072, 3072].map(
        (modulusLength) => generateKeyPairSync('rsa', { modulusLength }).privateKey,
      );
      if (!ec || !nextEc || !rsa || !nextRsa) throw new Error('no keys');
      const pem = (
        ...[sign, next, signRsa, nextR]: [KeyObject, KeyObject, KeyObject, KeyObject]
      ) => ({
        SVC_OIDC_SIGNING_KEY: secretPem(sign) + publicPem(next),
        SVC_OIDC_RSA_SIGNING_KEY: secretPem(signRsa) + publicPem(nextR),
      });
      const alone = {
        SVC_OIDC_SIGNING_KEY: secretPem(ec),
        SVC_OIDC_RSA_SIGNING_KEY: secretPem(rsa),
      };
      const steps = [alone, pem(ec, nextEc, rsa, nextRsa), pem(nextEc, ec, nextRsa, rsa)];
      expect(await walk(steps)).toEqual([]);
    });

    it('from PEM keys to KMS, and on to other keys of KMS, fails no request and no token', async () => {
      const { privateKey: ec } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 3072 });
      const [kmsEc, nextEc] = [
        await admin.create('ECC_NIST_P256'),
        await admin.create('ECC_NIST_P256'),
      ];
      const [kmsRsa, nextRsa] = [await admin.create('RSA_3072'), await admin.create('RSA_3072')];
      const published = {
        SVC_OIDC_SIGNING_KEY: secretPem(ec) + (await admin.publicPem(kmsEc)),
        SVC_OIDC_RSA_SIGNING_KEY: secretPem(rsa) + (await admin.publicPem(kmsRsa)),
      };
      const former = {
        SVC_OIDC_SIGNING_KEY: publicPem(ec), // only the public key, because the private key is gone
        SVC_OIDC_RSA_SIGNING_KEY: publicPem(rsa),
      };
      const none = { SVC_OIDC_SIGNING_KEY: '', SVC_OIDC_RSA_SIGNING_KEY: '' };
      const inKms = (ecIds: string, rsaIds: string) => ({
        SVC_OIDC_SIGNING_KMS_KEY_ID: ecIds,
        SVC_OIDC_RSA_SIGNING_KMS_KEY_ID: rsaIds,
      });
      const failures = await walk([
        { SVC_OIDC_SIGNING_KEY: secretPem(ec), SVC_OIDC_RSA_SIGNING_KEY: secretPem(rsa) },
        published,
        { ...former, ...inKms(kmsEc, kmsRsa) },
        WAIT,
        { ...none, ...inKms(`${kmsEc},${nextEc}`, `${kmsRsa},${nextRsa}`) },
        { ...none, ...inKms(`${nextEc},${kmsEc}`, `${nextRsa},${kmsRsa}`) },
      ]);
      expect(failures).toEqual([]);
    });
  },
);
