import { afterEach, describe, expect, it } from 'vitest';
import {
  startReplicatedService,
  type ReplicatedService,
  type Variables,
} from '../support/replicated-service.js';
import { startRotationLoad, type RotationLoad } from '../support/rotation-load.js';
import '../support/full-scale-only.js';

const OLD = 'the root secret before the change';
const NEW = 'the root secret after the change';

/**
 * Without these variables the token-signing keys are in the database, sealed under the root secret.
 */
const STORED_KEYS = { SVC_OIDC_SIGNING_KEY: '', SVC_OIDC_RSA_SIGNING_KEY: '' };

/**
 * Returns the environment of a replica that seals under one secret and also opens what another one
 * has sealed.
 */
const knows = (secret: string, other = ''): Variables => ({
  ...STORED_KEYS,
  SVC_JWT_SECRET: secret,
  SVC_JWT_SECRET_PREVIOUS: other,
});

describe('the rotation of the root secret, with two replicas under load', () => {
  let service: ReplicatedService;
  let load: RotationLoad;
  afterEach(() => service.close());

  it('fails no request and no token, walked as docs/operations/key-rotation.md says', async () => {
    service = await startReplicatedService(knows(OLD), knows(OLD));
    load = await startRotationLoad(service);
    await load.rounds(1);
    for (const step of [knows(OLD, NEW), knows(NEW, OLD)]) {
      for (const index of [0, 1]) {
        await service.replace(index, step);
        await load.rounds(1);
      }
    }
    // Stands for the wait of ten minutes in the guide: what the old secret sealed is then used up
    // or expired.
    await load.pause();
    load.resume();
    for (const index of [0, 1]) {
      await service.replace(index, knows(NEW));
      await load.rounds(1);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    for (const [kind, count] of Object.entries(load.done)) {
      expect(count, kind).toBeGreaterThanOrEqual(14);
    }
  });

  it('fails where one replica seals under a secret that the other does not know yet', async () => {
    service = await startReplicatedService(knows(OLD), knows(OLD));
    load = await startRotationLoad(service, 1);
    await load.rounds(1);
    expect(load.failures).toEqual([]);
    await service.replace(0, knows(NEW, OLD));
    await load.rounds(3);
    await load.stop();
    expect(load.failures.length).toBeGreaterThan(0);
  });
});
