import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { namesDomain } from '../../../src/domain/providers/vouching.js';
import { loadConfig } from '../../../src/platform/config/load-config.js';
import { DocumentSettings } from '../../../src/platform/config-sources/document-settings.js';
import { ProvidersModule } from '../../../src/domain/providers/providers.module.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Answer } from '../../support/client.js';
import { DnsServer } from '../../support/dns-server.js';
import { added, dnsModule, listed, verify } from '../../support/domains.js';
import { providerEnvironment } from '../../support/provider-environment.js';
import { allow } from '../../support/two-providers.js';
import { count, rows } from '../../support/rows.js';

let dns: DnsServer;
let app: TestApp;
/**
 * The claims that the provider sends for a user in place of the usual ones, by the user's e-mail
 * address.
 */
const says = new Map<string, object>();
const start = (environment: Record<string, string>) =>
  startTestApp({
    modules: [dnsModule({ servers: [dns.address], deadline: 1500 })],
    furtherProviders: ['other'],
    claims: (email) => says.get(email) ?? {},
    environment,
  });
beforeAll(async () => {
  dns = await DnsServer.start();
  app = await start({ SVC_IDP_DEMO_DOMAINS: 'Named.example, *.named.example, moves.example' });
});
afterAll(async () => {
  await app.close();
  await dns.close();
});

/**
 * Signs a user in at a provider and tries to enroll a key. Returns the refusal of the sign-in, or
 * the response to the enrollment.
 */
async function comes(email: string, provider = 'demo'): Promise<Answer> {
  const browser = app.client();
  const page = await browser.signIn(email, '/', provider);
  return page.status === 200 ? browser.enroll(app.newKey()) : page;
}

describe('a provider with a list of domains', () => {
  it('signs in and founds in its domains alone; every other address is refused with a page', async () => {
    expect((await comes('ada@named.example')).status).toBe(200);
    expect((await comes('ada@team.named.example')).status).toBe(200);
    for (const domain of [
      'stranger.example',
      'unnamed.example',
      'named.example.stranger.example',
    ]) {
      const refused = await comes(`ada@${domain}`);
      expect(refused.status).toBe(403);
      expect(refused.text).toContain('does not sign in users of your e-mail domain');
      expect(await count(app.dataSource, 'organization_domains WHERE domain = $1', [domain])).toBe(
        0,
      );
    }
    expect((await comes('ada@stranger.example', 'other')).status).toBe(200);
  });

  it('neither binds a member of another domain, nor moves one there', async () => {
    const { client: ada } = await app.enrolled('ada@moves.example');
    await rows(
      app.dataSource,
      `INSERT INTO organization_domains (org_id, domain, verified_at)
       SELECT org_id, 'outside.example', now() FROM users WHERE email = 'ada@moves.example'`,
    );
    expect((await comes('bob@outside.example')).status).toBe(403);
    expect((await allow(ada, 'other')).status).toBe(201);
    expect((await comes('bob@outside.example', 'other')).status).toBe(200);
    says.set('ada@moves.example', { email: 'ada@outside.example' });
    expect((await comes('ada@moves.example')).status).toBe(403);
    expect(await count(app.dataSource, `users WHERE email = 'ada@outside.example'`)).toBe(0);
    says.delete('ada@moves.example');
  });

  it('does not sign in the account of another domain to which an identity was bound before the list', async () => {
    await app.enrolled('eve@moves.example');
    await rows(
      app.dataSource,
      `UPDATE users SET email = 'eve@outside.example' WHERE email = 'eve@moves.example'`,
    );
    const refused = await app.client().signIn('eve@moves.example');
    expect(refused.status).toBe(403);
    expect(await count(app.dataSource, `users WHERE email = 'eve@outside.example'`)).toBe(1);
  });

  it('proves the primary domain that it names: no proof of another organization takes it', async () => {
    const { client: ada } = await app.enrolled('ada@deep.named.example');
    expect(await listed(ada, 'deep.named.example')).toMatchObject({ proof: 'provider' });
    const { client: eve } = await app.enrolled('eve@prover.named.example');
    const { record } = await added(eve, 'deep.named.example');
    dns.replies.set(record.name, { texts: [record.value] });
    expect((await verify(eve, 'deep.named.example')).json.code).toBe('domain_taken');
    const below = await comes('bob@below.deep.named.example', 'other');
    expect(below.status).toBe(403);
  });

  it('is warned of at the start where another provider has no list, with the variable and the risk', () => {
    const warnings = app.log
      .map((line) => JSON.parse(line) as { context?: string; msg?: string; message?: string })
      .filter(({ context }) => context === 'security')
      .map(({ msg, message }) => msg ?? message ?? '');
    expect(warnings).toContainEqual(expect.stringContaining('SVC_IDP_OTHER_DOMAINS'));
    expect(warnings.find((line) => line.includes('SVC_IDP_OTHER_DOMAINS'))).toContain(
      'every domain',
    );
    expect(warnings.join()).not.toContain('SVC_IDP_DEMO_DOMAINS');
  });

  it('refuses the enrollment of a user whose sign-in came before the list', async () => {
    const early = app.client();
    expect((await early.signIn('late@fresh.example', '/', 'other')).status).toBe(200);
    await rows(
      app.dataSource,
      `UPDATE sessions SET pending_identity = jsonb_set(pending_identity, '{provider}', '"demo"')
       WHERE pending_identity ->> 'email' = 'late@fresh.example'`,
    );
    expect((await early.enroll(app.newKey())).json).toMatchObject({ code: 'enrollment_refused' });
    expect(await count(app.dataSource, `users WHERE email = 'late@fresh.example'`)).toBe(0);
  });

  it('proves at each start the primary domains that were founded before it named them, and no others', async () => {
    await comes('ada@stays.example', 'other');
    const vouched = (domain: string) =>
      count(app.dataSource, 'organization_domains WHERE is_vouched AND domain = $1', [domain]);
    await rows(
      app.dataSource,
      'UPDATE organization_domains SET is_vouched = NOT is_vouched WHERE is_primary',
    );
    await app.nest.get(ProvidersModule, { strict: false }).onApplicationBootstrap();
    expect(await vouched('deep.named.example')).toBe(1);
    expect(await vouched('named.example')).toBe(1);
    expect(await vouched('stays.example')).toBe(0);
  });
});

describe('the list of domains', () => {
  it('names a domain alone, and by *. its subdomains of every depth, but not the domain itself', () => {
    const named = (domain: string) => namesDomain(['corp.example', '*.team.example'], domain);
    expect(named('corp.example')).toBe(true);
    expect(named('x.team.example')).toBe(true);
    expect(named('y.x.team.example')).toBe(true);
    for (const domain of [
      'x.corp.example',
      'team.example',
      'xteam.example',
      'corp.example.evil.example',
    ]) {
      expect(named(domain)).toBe(false);
    }
  });

  it.each([
    ['an empty list', ','],
    ['every domain', '*'],
    ['a top-level domain', '*.com'],
    ['a star inside', 'a.*.example'],
    ['an address', 'ada@corp.example'],
    ['a path', 'corp.example/x'],
  ])('is refused with %s', (_, value) => {
    const environment = {
      ...providerEnvironment('https://idp.example'),
      SVC_IDP_DEMO_DOMAINS: value,
    };
    expect(() => loadConfig(environment)).toThrow('SVC_IDP_DEMO_DOMAINS: must be domains');
  });

  it('is an array in the document of an object store', () => {
    const idp = { id: 'corp', type: 'oidc', domains: ['corp.example', '*.corp.example'] };
    const { variables, problems } = new DocumentSettings({ idps: [idp] });
    expect(problems).toEqual([]);
    expect(variables['SVC_IDP_CORP_DOMAINS']).toBe('corp.example,*.corp.example');
    expect(new DocumentSettings({ idps: [{ ...idp, domains: [] }] }).problems).toHaveLength(1);
  });
});
