import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readIdpMetadata } from '#domain/providers/saml/metadata/idp-metadata.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import {
  metadataXml,
  newKey,
  PERSISTENT,
  startSamlIdp,
  type TestSamlIdp,
} from '../support/saml-idp.js';
import {
  beginSaml,
  resumeSaml,
  samlService,
  samlSettings,
  SERVICE_URL,
  signInBySaml,
} from '../support/saml-service.js';
import { TestClock } from '../support/test-clock.js';
import { fakeIdp, refusal, settingsOf } from '../support/upstream.js';
import { changed } from '../support/fake-idp.js';
import { count } from '../support/rows.js';

const MINUTE = 60_000;
const TRANSIENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';
const UNSPECIFIED = 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified';

const service = samlService();
let idp: TestSamlIdp;
beforeAll(async () => {
  idp = await startSamlIdp({ baseUrl: () => SERVICE_URL, slug: 'corp' });
});
afterAll(() => idp.close());

/** Connects the SAML providers as one replica does, with a clock of its own. */
async function replica(clock = new TestClock(), changes: Parameters<typeof samlSettings>[1] = {}) {
  const providers = await service.connect([samlSettings(idp, changes)], clock);
  return { clock, providers, now: clock.milliseconds() };
}

describe('an assertion', () => {
  it.each(['rsa-sha256', 'rsa-sha384', 'rsa-sha512', 'ecdsa-sha256', 'ecdsa-sha512'] as const)(
    'signed by %s signs a user in',
    async (algorithm) => {
      idp.useAlgorithm(algorithm);
      const { providers, now } = await replica();
      const identity = await signInBySaml(providers, idp, { now, nameId: 'Ada@Engine.test' });
      expect(identity).toEqual({
        provider: 'corp',
        issuer: idp.entityId,
        subject: 'ada@engine.test',
        tenant: '',
        email: 'ada@engine.test',
        name: null,
        organizationDomain: 'engine.test',
      });
      idp.useAlgorithm('rsa-sha256');
    },
  );

  it('is refused for an address in a domain for which the provider may not vouch', async () => {
    const { providers, now } = await replica(new TestClock(), { domains: ['engine.test'] });
    const signIn = (nameId: string) => signInBySaml(providers, idp, { now, nameId });
    await expect(signIn('ada@engine.test')).resolves.toBeDefined();
    for (const nameId of ['ada@other.test', 'ada@sub.engine.test']) {
      const refused = await refusal(signIn(nameId));
      expect(refused.code).toBe('sign_in_refused');
    }
  });

  const at = (name: string, offset: number) => (now: number) =>
    `${name}="${new Date(now + offset).toISOString()}"`;
  it.each([
    ['conditions', at('NotBefore', 4 * MINUTE), at('NotBefore', 6 * MINUTE)],
    ['conditions', at('NotOnOrAfter', -4 * MINUTE), at('NotOnOrAfter', -6 * MINUTE)],
    ['confirmation', at('NotOnOrAfter', -4 * MINUTE), at('NotOnOrAfter', -6 * MINUTE)],
    ['statement', at('SessionNotOnOrAfter', -4 * MINUTE), at('SessionNotOnOrAfter', -6 * MINUTE)],
  ] as const)('has %s that are 4 minutes off, and not 6', async (place, within, beyond) => {
    const { providers, now } = await replica();
    await expect(
      signInBySaml(providers, idp, { now, [place]: within(now) }),
    ).resolves.toBeDefined();
    const refused = await refusal(signInBySaml(providers, idp, { now, [place]: beyond(now) }));
    expect(refused.code).toBe('sign_in_failed');
  });

  it.each([
    ['that never expires', { confirmation: 'Address="10.0.0.1"' }],
    ['with a time without a zone', { conditions: 'NotOnOrAfter="2026-01-01T00:00:00"' }],
    ['for another audience', { audience: 'https://other.test/saml/metadata' }],
    ['of another issuer', { issuer: 'https://idp.example' }],
    ['with a malformed NameID', { nameId: '' }],
  ])('%s is refused', async (_, changes) => {
    const { providers, now } = await replica();
    const refused = await refusal(signInBySaml(providers, idp, { now, ...changes }));
    expect(refused.code).toBe('sign_in_failed');
  });

  it.each([
    ['transient', { format: TRANSIENT }, /set the format of the NameID/],
    ['unspecified', { format: UNSPECIFIED }, /set the format of the NameID/],
    ['another provider’s', { qualifiers: 'NameQualifier="https://other.test"' }, /qualifiers/],
    ['another service’s', { qualifiers: 'SPNameQualifier="https://other.test"' }, /qualifiers/],
    ['persistent, without an address', { format: PERSISTENT }, /SVC_IDP_CORP_EMAIL_ATTRIBUTE/],
    ['no address', { nameId: 'ada' }, /malformed/],
  ])('with a NameID that is %s is refused with the remedy', async (_, changes, remedy) => {
    const { providers, now } = await replica();
    const refused = await refusal(signInBySaml(providers, idp, { now, ...changes }));
    expect([refused.code, refused.detail]).toEqual([
      'sign_in_refused',
      expect.stringMatching(remedy),
    ]);
  });

  it('gives the address by the configured attribute, and a persistent subject exactly', async () => {
    const { providers, now } = await replica(undefined, { emailAttribute: 'urn:mail' });
    const identity = await signInBySaml(providers, idp, {
      now,
      format: PERSISTENT,
      nameId: 'aB7',
      qualifiers: `NameQualifier="${idp.entityId}" SPNameQualifier="${SERVICE_URL}/saml/metadata"`,
      attributes: { 'urn:mail': [' Ada@Engine.test'], displayName: ['Ada Lovelace'] },
    });
    expect(identity).toMatchObject({
      subject: 'aB7',
      email: 'ada@engine.test',
      name: 'Ada Lovelace',
    });
  });

  it.each([' aB7', 'aB7 ', 'aB7\u00A0', '\u3000aB7', '\uFEFFaB7'])(
    'keeps the white space of the persistent NameID %j, which is another than aB7',
    async (nameId) => {
      const { providers, now } = await replica(undefined, { emailAttribute: 'urn:mail' });
      const identity = await signInBySaml(providers, idp, {
        now,
        format: PERSISTENT,
        nameId,
        attributes: { 'urn:mail': ['ada@engine.test'] },
      });
      expect(identity.subject).toBe(nameId);
    },
  );

  it('is refused with a persistent NameID of several lines', async () => {
    const { providers, now } = await replica(undefined, { emailAttribute: 'urn:mail' });
    const attempt = signInBySaml(providers, idp, {
      now,
      format: PERSISTENT,
      nameId: '\n  aB7\n',
      attributes: { 'urn:mail': ['ada@engine.test'] },
    });
    expect((await refusal(attempt)).detail).toMatch(/malformed NameID/);
  });

  it.each([
    ['no value', {}],
    ['two values', { 'urn:mail': ['a@engine.test', 'b@engine.test'] }],
    ['an element as its value', { 'urn:mail': ['<x xmlns="urn:x">a@engine.test</x>'] }],
  ])('whose address has %s is refused with the name of the attribute', async (_, attributes) => {
    const { providers, now } = await replica(undefined, { emailAttribute: 'urn:mail' });
    const refused = await refusal(signInBySaml(providers, idp, { now, attributes }));
    expect([refused.code, refused.detail]).toEqual([
      'sign_in_refused',
      expect.stringContaining('urn:mail'),
    ]);
  });

  it.each([
    ['the domain of the address', ['ENGINE.test'], 'engine.test'],
    ['another domain', ['victim.test'], undefined],
    ['a parent of the domain', ['test'], undefined],
    ['no domain', [], undefined],
    ['two domains', ['engine.test', 'victim.test'], undefined],
  ])('that names %s as its organization', async (_, values, domain) => {
    const { providers, now } = await replica(undefined, { domainAttribute: 'org' });
    const attempt = signInBySaml(providers, idp, { now, attributes: { org: values } });
    if (domain === undefined) expect((await refusal(attempt)).code).toBe('sign_in_refused');
    else expect((await attempt).organizationDomain).toBe(domain);
  });
});

describe('a response', () => {
  it('that 20 posts bring at once to two replicas is accepted once', async () => {
    const clock = new TestClock();
    const [one, other] = [await replica(clock), await replica(clock)];
    const { requestId, kept } = await beginSaml(one.providers);
    const response = idp.respond({ requestId, now: one.now });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => (i % 2 ? one : other).providers.receive(response)),
    );
    const accepted = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    expect(accepted).toHaveLength(1);
    const [received] = accepted.map(({ value }) => value);
    if (received?.kind !== 'accepted') throw new Error('it was refused');

    const resumed = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        resumeSaml((i % 2 ? one : other).providers, { kept, handle: received.handle }),
      ),
    );
    expect(resumed.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('belongs to the browser that began the sign-in', async () => {
    const { providers, now } = await replica();
    const [victim, attacker] = [await beginSaml(providers), await beginSaml(providers)];
    const received = await providers.receive(idp.respond({ requestId: victim.requestId, now }));
    if (received.kind !== 'accepted') throw received.error;
    const { handle } = received;
    const steal = { kept: attacker.kept, handle };
    expect((await refusal(resumeSaml(providers, steal))).code).toBe('invalid_state');
    const foreign = { kept: victim.kept, handle, browser: 'the secret of another browser' };
    expect((await refusal(resumeSaml(providers, foreign))).code).toBe('invalid_state');
    expect((await refusal(resumeSaml(providers, { kept: '', handle }))).code).toBe('invalid_state');
    expect((await resumeSaml(providers, { kept: victim.kept, handle })).email).toBe(
      'ada@engine.test',
    );
  });

  it('cannot be resumed at the callback of OpenID Connect', async () => {
    const { providers, now } = await replica();
    const { requestId, kept } = await beginSaml(providers);
    const received = await providers.receive(idp.respond({ requestId, now }));
    if (received.kind !== 'accepted') throw received.error;
    const url = new URL(`${SERVICE_URL}/oauth/callback?state=${kept}&response=${received.handle}`);
    const browser = 'the secret of this browser';
    expect((await refusal(providers.resume({ url, browser }))).code).toBe('invalid_state');
  });

  it('to no recent request of this service leaves no trace', async () => {
    const { providers, clock, now } = await replica();
    const { requestId } = await beginSaml(providers);
    const before = await count(service.dataSource(), 'saml_assertions');
    const forged = `${requestId.slice(0, -1)}${requestId.endsWith('A') ? 'B' : 'A'}`;
    for (const id of ['', '_x', forged]) {
      const attempt = providers.receive(idp.respond({ requestId: id, now }));
      expect((await refusal(attempt)).code).toBe('sign_in_failed');
    }
    clock.advance(11 * MINUTE);
    const late = providers.receive(idp.respond({ requestId, now: clock.milliseconds() }));
    expect((await refusal(late)).code).toBe('sign_in_failed');
    expect(await count(service.dataSource(), 'saml_assertions')).toBe(before);
  });

  it('whose request went to another provider is refused', async () => {
    const other = await startSamlIdp({ baseUrl: () => SERVICE_URL, slug: 'other' });
    const clock = new TestClock();
    const settings = [samlSettings(idp), samlSettings(other, { slug: 'other' })];
    const providers = await service.connect(settings, clock);
    const { requestId } = await beginSaml(providers, 'other');
    const attempt = providers.receive(idp.respond({ requestId, now: clock.milliseconds() }));
    expect((await refusal(attempt)).code).toBe('sign_in_failed');
    await other.close();
  });
});

describe('the metadata of a provider', () => {
  const problemsOf = async (...ids: Pick<TestSamlIdp, 'metadataUrl'>[]) => {
    const settings = ids.map((one, i) => samlSettings(one, { slug: `corp-${i}` }));
    const error: unknown = await service
      .connect(settings, new TestClock())
      .catch((reason: unknown) => reason);
    if (error instanceof ConfigProblems) return error.problems;
    throw new Error('the start did not fail', { cause: error });
  };
  const replacing = (from: string | RegExp, to: string) => (xml: string) => xml.replace(from, to);

  it.each([
    ['is HTML', () => '<html><body>Sign in</body></html>', /is not SAML 2\.0 metadata/],
    ['is no XML', () => '{"issuer":"x"}', /is not plain, well-formed XML/],
    ['has a DTD', replacing('<md:Entity', '<!DOCTYPE x><md:Entity'), /document type/],
    ['has no provider', replacing(/IDPSSODescriptor/g, 'SPSSODescriptor'), /no identity provider/],
    [
      'has two providers',
      (xml: string) => {
        const entity = xml.replace(/^.*?(?=<md:Entity)/s, '');
        return `<m:EntitiesDescriptor xmlns:m="urn:oasis:names:tc:SAML:2.0:metadata">${entity}${entity}</m:EntitiesDescriptor>`;
      },
      /describes 2 identity providers/,
    ],
    ['has another binding', replacing('HTTP-Redirect', 'HTTP-POST'), /HTTP-Redirect binding/],
    ['leads to http', replacing(/http:\/\/127[^"]*sso/, 'http://idp.example/sso'), /https URL/],
    [
      'has no signing key',
      replacing('use="signing"', 'use="encryption"'),
      /no signing certificate/,
    ],
    [
      'has a weak key',
      replacing(/(?<=X509Certificate>)[^<]+/, newKey(1024).certificate),
      /2048 bits/,
    ],
    [
      'is out of date',
      replacing('entityID', 'validUntil="2025-12-31T00:00:00Z" entityID'),
      /validUntil is in the past/,
    ],
  ])('that %s stops the start with one line', async (_, change, says) => {
    idp.metadata = change;
    const problems = await problemsOf(idp);
    idp.metadata = undefined;
    expect(problems).toEqual([
      expect.stringMatching(new RegExp(`^SVC_IDP_CORP_0_METADATA_URL: .*${says.source}`)),
    ]);
  });

  it('behind a redirect, too large, or of a provider that is known stops the start', async () => {
    idp.status = 302;
    expect(await problemsOf(idp)).toEqual([expect.stringMatching(/redirects are not followed/)]);
    idp.status = 200;
    idp.metadata = (xml) => `${xml}${' '.repeat(1024 * 1024)}`;
    expect(await problemsOf(idp)).toEqual([expect.stringMatching(/too large/)]);
    idp.metadata = undefined;
    expect((await problemsOf(idp, idp)).every((line) => /entityID of another/.test(line))).toBe(
      true,
    );
  });

  it('of the issuer of a tenant of another provider stops the start: it could speak for the users of that tenant', async () => {
    const entra = await fakeIdp({ path: '/organizations/v2.0' });
    entra.misbehaviour = { document: changed({ issuer: `${entra.origin}/{tenantid}/v2.0` }) };
    const entityId = `${entra.origin}/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0`;
    idp.metadata = replacing(/entityID="[^"]*"/, `entityID="${entityId}"`);
    try {
      const providers = [settingsOf(entra, 'entra'), samlSettings(idp)];
      await expect(service.connect(providers, new TestClock())).rejects.toMatchObject({
        problems: ['SVC_IDP_CORP_METADATA_URL: the metadata has the entityID of another provider'],
      });
    } finally {
      idp.metadata = undefined;
    }
  });

  it('brings new keys with the daily refresh, and a failed refresh keeps what runs', async () => {
    const { providers, now } = await replica();
    await providers.refresh(); // uses up the fetch that an unknown key causes once a minute
    idp.rotateKey();
    expect((await refusal(signInBySaml(providers, idp, { now }))).code).toBe('sign_in_failed');
    for (const change of [
      () => 'not metadata',
      replacing(/entityID="[^"]*"/, 'entityID="https://other.test"'),
      replacing(/http:\/\/127[^"]*sso/, 'https://other.test/sso'),
    ]) {
      idp.metadata = change;
      await providers.refresh();
      expect((await refusal(signInBySaml(providers, idp, { now }))).code).toBe('sign_in_failed');
    }
    expect(providers.authorizationEndpointOrigins()).toEqual([new URL(idp.metadataUrl).origin]);
    idp.metadata = undefined;
    await providers.refresh();
    await expect(signInBySaml(providers, idp, { now })).resolves.toBeDefined();
  });

  it('may have a byte order mark, comments and a query in its address', () => {
    const xml = metadataXml({
      entityId: 'https://idp.test',
      ssoUrl: 'https://idp.test/sso?a=1&b=2',
      certificate: newKey().certificate,
      wantsSignedRequests: true,
    });
    const read = readIdpMetadata(`\uFEFF${xml}`, 'https://idp.test/metadata', 0);
    expect(read).toMatchObject({
      entityId: 'https://idp.test',
      ssoUrl: 'https://idp.test/sso?a=1&b=2',
      wantsSignedRequests: true,
    });
  });
});
