import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { IdentityProviders } from '#domain/providers/identity-providers.service.js';
import { newKey, signed, startSamlIdp, type TestSamlIdp } from '../support/saml-idp.js';
import {
  beginSaml,
  samlService,
  samlSettings,
  SERVICE_URL,
  signInBySaml,
} from '../support/saml-service.js';
import { TestClock } from '../support/test-clock.js';
import { refusal } from '../support/upstream.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const service = samlService();
let idp: TestSamlIdp;
beforeAll(async () => {
  idp = await startSamlIdp({ baseUrl: () => SERVICE_URL, slug: 'corp' });
});
afterAll(() => idp.close());
beforeEach(() => {
  Object.assign(idp, { metadata: undefined, status: 200, hold: undefined });
});

/**
 * Connects the provider as one replica does. Then sets the count of its metadata fetches to zero.
 */
async function replica() {
  const clock = new TestClock();
  const providers = await service.connect([samlSettings(idp)], clock);
  idp.fetches = 0;
  const signIn = () => signInBySaml(providers, idp, { now: clock.milliseconds() });
  return { clock, providers, signIn };
}

/** Adds attributes to the root element of the metadata that the provider publishes. */
function publishes(attributes: () => string): void {
  idp.metadata = (xml) => xml.replace(' entityID', ` ${attributes()} entityID`);
}

/** Begins a sign-in, changes the provider's response to it, and posts the response. */
async function post(
  providers: IdentityProviders,
  clock: TestClock,
  change: (xml: string) => string,
): Promise<unknown> {
  const { requestId } = await beginSaml(providers);
  const response = idp.respond({ requestId, now: clock.milliseconds() });
  const xml = change(Buffer.from(response, 'base64').toString());
  return providers.receive(Buffer.from(xml).toString('base64'));
}

const stranger = newKey().privateKey;
const unsigned = (xml: string) => xml.replace(/<ds:Signature.*<\/ds:Signature>/s, '');
const bySelf = (xml: string) => signed(unsigned(xml), stranger);
const changed = (xml: string) => xml.replace('ada@engine.test', 'eve@engine.test');

describe('a key that a SAML provider replaced', () => {
  it('signs users in at once: 20 sign-ins at the same time fetch the metadata once', async () => {
    const { signIn } = await replica();
    idp.rotateKey();
    const gate = Promise.withResolvers<void>();
    idp.hold = gate.promise;
    const all = Promise.all(Array.from({ length: 20 }, signIn));
    await expect.poll(() => idp.fetches, { interval: 5 }).toBe(1);
    gate.resolve();
    for (const { email } of await all) expect(email).toBe('ada@engine.test');
    expect(idp.fetches).toBe(1);
  });

  it('is looked for once a minute at most, and the key that left the metadata is refused', async () => {
    const { clock, providers, signIn } = await replica();
    const { requestId } = await beginSaml(providers);
    const byOldKey = idp.respond({ requestId, now: clock.milliseconds() });
    idp.rotateKey();
    await signIn();
    expect((await refusal(providers.receive(byOldKey))).detail).toContain('no key');
    idp.rotateKey();
    clock.advance(MINUTE - 1);
    expect((await refusal(signIn())).detail).toContain('no key');
    expect(idp.fetches).toBe(1);
    clock.advance(1);
    await expect(signIn()).resolves.toBeDefined();
    expect(idp.fetches).toBe(2);
  });

  it('is not found while the metadata cannot be read, and the old key signs in all the while', async () => {
    const { clock, providers, signIn } = await replica();
    for (const status of [500, 404, 302]) {
      idp.status = status;
      clock.advance(MINUTE);
      await refusal(post(providers, clock, bySelf));
      await expect(signIn()).resolves.toBeDefined();
    }
    idp.status = 200;
    for (const metadata of [
      () => 'not metadata',
      (xml: string) => xml.replace(/entityID="[^"]*"/, 'entityID="https://other.test"'),
      (xml: string) => xml.replace(/http:\/\/127[^"]*sso/, 'https://other.test/sso'),
    ]) {
      idp.metadata = metadata;
      clock.advance(MINUTE);
      await refusal(post(providers, clock, bySelf));
      await expect(signIn()).resolves.toBeDefined();
    }
    expect(idp.fetches).toBe(6);
  });
});

describe('a response that the provider did not sign', () => {
  it.each([
    ['without a signature', unsigned, /is not signed/, 0],
    ['changed after it was signed', changed, /was changed after it was signed/, 0],
    [
      'changed after a stranger signed it',
      (xml: string) => changed(bySelf(xml)),
      /was changed after it was signed/,
      0,
    ],
    [
      'that names another issuer',
      (xml: string) => bySelf(xml.replaceAll('/idp<', '/x<')),
      /names/,
      0,
    ],
    ['signed by a stranger', bySelf, /has a signature of no key/, 1],
  ])('%s is refused for its own reason', async (_, change, reason, fetches) => {
    const { clock, providers } = await replica();
    for (let count = 0; count < 3; count += 1) {
      const refused = await refusal(post(providers, clock, change));
      expect([refused.code, refused.detail]).toEqual([
        'sign_in_failed',
        expect.stringMatching(reason),
      ]);
    }
    expect(idp.fetches).toBe(fetches);
  });

  it('neither delays a sign-in by a known key nor holds more than 64 requests while the metadata is awaited', async () => {
    const { clock, providers, signIn } = await replica();
    const gate = Promise.withResolvers<void>();
    idp.hold = gate.promise;
    let refusedAtOnce = 0;
    const stranger100 = Array.from({ length: 100 }, async () => {
      await refusal(post(providers, clock, bySelf));
      refusedAtOnce += 1;
    });
    await expect.poll(() => refusedAtOnce, { interval: 5 }).toBe(36);
    await expect(signIn()).resolves.toBeDefined();
    gate.resolve();
    await Promise.all(stranger100);
    expect(idp.fetches).toBe(1);
  });
});

describe('the age of the metadata', () => {
  it.each([
    ['its cacheDuration of 2 hours', 'cacheDuration="PT2H"', 2 * HOUR],
    ['5 minutes at least', 'cacheDuration="PT0S"', 5 * MINUTE],
    ['5 minutes where it is negative', 'cacheDuration="-P1D"', 5 * MINUTE],
    ['a day at most', 'cacheDuration="P900Y"', DAY],
    ['a day without it', 'ID="_1"', DAY],
    ['a day where it is malformed', 'cacheDuration="tomorrow"', DAY],
    ['half of what its validUntil leaves', 'validUntil="2026-01-01T08:00:00Z"', 4 * HOUR],
  ])('ends after %s: the next sign-in reads it first', async (_, attributes, age) => {
    publishes(() => attributes);
    const { clock, providers, signIn } = await replica();
    clock.advance(age - 1);
    await providers.refreshDue();
    await signIn();
    expect(idp.fetches).toBe(0);
    clock.advance(1);
    const { requestId } = await beginSaml(providers);
    const withdrawn = idp.respond({ requestId, now: clock.milliseconds() });
    idp.rotateKey();
    idp.metadata = undefined;
    expect((await refusal(providers.receive(withdrawn))).detail).toContain('no key');
    await expect(signIn()).resolves.toBeDefined();
    expect(idp.fetches).toBe(1);
  });

  it('is kept by the service itself, without a sign-in', async () => {
    publishes(() => 'cacheDuration="PT1H"');
    const { clock, providers } = await replica();
    for (const fetches of [1, 2, 3]) {
      clock.advance(HOUR);
      await providers.refreshDue();
      await providers.refreshDue();
      expect(idp.fetches).toBe(fetches);
    }
  });

  it('does not matter while it cannot be read: the keys stay, and it is asked for every 5 minutes', async () => {
    publishes(() => 'cacheDuration="PT1H"');
    const { clock, providers, signIn } = await replica();
    clock.advance(HOUR);
    idp.status = 500;
    await expect(signIn()).resolves.toBeDefined();
    await expect(signIn()).resolves.toBeDefined();
    expect(idp.fetches).toBe(1);
    clock.advance(5 * MINUTE);
    const gate = Promise.withResolvers<void>();
    idp.hold = gate.promise;
    const repeated = providers.refreshDue();
    await expect.poll(() => idp.fetches, { interval: 5 }).toBe(2);
    await expect(signIn()).resolves.toBeDefined();
    expect(idp.fetches).toBe(2);
    gate.resolve();
    await repeated;
  });

  it('never outlives its validUntil: no key of it signs in until the provider publishes again', async () => {
    publishes(() => 'validUntil="2026-01-01T08:00:00Z"');
    const { clock, providers, signIn } = await replica();
    clock.advance(8 * HOUR - 1);
    idp.status = 500;
    const { requestId } = await beginSaml(providers);
    await expect(signIn()).resolves.toBeDefined();
    clock.advance(1);
    const late = idp.respond({ requestId, now: clock.milliseconds() });
    expect((await refusal(providers.receive(late))).code).toBe('upstream_unavailable');
    expect((await refusal(signIn())).code).toBe('upstream_unavailable');
    idp.status = 200;
    clock.advance(MINUTE);
    expect((await refusal(signIn())).code).toBe('upstream_unavailable'); // it has expired
    idp.metadata = undefined;
    clock.advance(MINUTE);
    await expect(signIn()).resolves.toBeDefined();
  });
});
