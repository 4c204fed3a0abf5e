import { createHash } from 'node:crypto';
import { Provider, interactionPolicy } from 'oidc-provider';
// @ts-expect-error -- this file of the library has no types
import instanceOf from 'oidc-provider/lib/helpers/weak_cache.js';
import { describe, expect, it } from 'vitest';
import * as patches from '../../../../src/features/oidc/engine/library-patches.js';

/**
 * The functions of the library that `library-patches.ts` calls or replaces, and those that they
 * call, each with the hash of its text. If one is another after an update: read it, run the tests
 * that its entry in `library-patches.ts` names, and record the hash here.
 */
const READ: Readonly<Record<string, string>> = {
  'grants.buildTokenResponse': 'bebe45369bbde122',
  'grants.checkDpopReplay': 'c2c4f632ae40b5a6',
  'grants.checkDpopRequired': '20151069543e4b1a',
  'grants.checkMtlsCert': 'c2bb2cb821898769',
  'grants.resolveRequestedResources': '63e82e759bfd8d35',
  'grants.validateClientScope': '5815638c11b44ac5',
  'grants.validateDpop': 'ad8bd399c17174cb',
  'weak_cache.get': 'b78dc30f0576a183',
  'challenge.ServerChallenge': 'f5b46f5ac130ecc2',
  'ReplayDetection.unique': '26f0872a55e335f1',
  'Client.compareClientSecret': '7a404f9c25995b01',
  'OIDCContext.clientJwtAuthExpectedAudience': '6ac77806898d6f94',
  'consent.native_client_prompt': '0597dff889f1d02d',
};

const provider = new Provider('https://issuer.example', {
  features: { dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 1) } },
});

/** The functions as they are installed. */
function installed(): Record<string, unknown> {
  const { DPoPNonces } = instanceOf(provider) as { DPoPNonces: object };
  const nonces = Object.getPrototypeOf(DPoPNonces) as { constructor: unknown };
  const { ReplayDetection, Client, OIDCContext } = provider;
  const consent = interactionPolicy.base().get('consent');
  return {
    'grants.buildTokenResponse': patches.buildTokenResponse,
    'grants.checkDpopReplay': patches.checkDpopReplay,
    'grants.checkDpopRequired': patches.checkDpopRequired,
    'grants.checkMtlsCert': patches.checkMtlsCert,
    'grants.resolveRequestedResources': patches.resolveRequestedResources,
    'grants.validateClientScope': patches.validateClientScope,
    'grants.validateDpop': patches.validateDpop,
    'weak_cache.get': instanceOf,
    'challenge.ServerChallenge': nonces.constructor,
    'ReplayDetection.unique': Reflect.get(ReplayDetection, 'unique'),
    'Client.compareClientSecret': Reflect.get(Client.prototype, 'compareClientSecret'),
    'OIDCContext.clientJwtAuthExpectedAudience': Reflect.get(
      OIDCContext.prototype,
      'clientJwtAuthExpectedAudience',
    ),
    'consent.native_client_prompt': consent?.checks.get('native_client_prompt')?.check,
  };
}

function hashesOf(functions: Readonly<Record<string, unknown>>): Record<string, string> {
  const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);
  return Object.fromEntries(
    Object.entries(functions).map(([name, one]) => [name, hash(String(one))]),
  );
}

describe('the inside of oidc-provider that library-patches.ts uses', () => {
  it('is what was read when it was last updated', () => {
    const functions = installed();
    const missing = Object.keys(functions).filter((name) => typeof functions[name] !== 'function');
    expect(missing).toEqual([]);
    expect(hashesOf(functions)).toEqual(READ);
  });

  it('is seen if a function changes', () => {
    const changed = { 'weak_cache.get': () => undefined };
    expect(hashesOf(changed)['weak_cache.get']).not.toBe(READ['weak_cache.get']);
  });
});
