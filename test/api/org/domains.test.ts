import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Answer, Client } from '../../support/client.js';
import { DnsServer } from '../../support/dns-server.js';
import {
  added,
  auditOfDomain,
  dnsModule,
  listed,
  proven,
  removal,
  verify,
} from '../../support/domains.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';

let dns: DnsServer;
let app: TestApp;
/**
 * Ada is the admin of an organization, and bob is a member of it. Eve is the admin of another
 * organization.
 */
let ada: Client;
let bob: Client;
let eve: Client;
beforeAll(async () => {
  dns = await DnsServer.start();
  app = await startTestApp({ modules: [dnsModule({ servers: [dns.address], deadline: 1500 })] });
  ({ client: ada } = await app.enrolled('ada@domains.example'));
  ({ client: bob } = await app.enrolled('bob@domains.example'));
  ({ client: eve } = await app.enrolled('eve@other-domains.example'));
});
afterAll(async () => {
  await app.close();
  await dns.close();
});
beforeEach(async () => {
  dns.replies.clear();
  await rows(app.dataSource, 'DELETE FROM organization_domains WHERE NOT is_primary');
  await rows(app.dataSource, 'DELETE FROM dns_proven_domains');
});

const add = (admin: Client, domain: unknown) => orgApi(admin, 'POST', '/domains', { domain });
const outcome = ({ status, json }: Answer) => [status, json?.code ?? json?.state];

describe('the domains of an organization', () => {
  it('are its primary one and those that it added, each with its state and its record', async () => {
    const pending = await added(ada, 'extra.example');
    const { domains } = (await orgApi(ada, 'GET', '/domains')).json;
    expect(domains).toEqual([
      {
        domain: 'domains.example',
        primary: true,
        state: 'verified',
        record: {
          name: '_svc-verification.domains.example',
          type: 'TXT',
          value: expect.stringMatching(/^svc-verification=[\w-]{43}$/),
        },
        proof: null,
        added_by: null,
        created_at: expect.any(String),
        verified_at: expect.any(String),
        last_checked_at: null,
        failures: 0,
      },
      {
        domain: 'extra.example',
        primary: false,
        state: 'pending',
        record: {
          name: '_svc-verification.extra.example',
          type: 'TXT',
          value: expect.stringMatching(/^svc-verification=[\w-]{43}$/),
        },
        proof: null,
        added_by: await idOf(app, 'ada@domains.example'),
        created_at: expect.any(String),
        verified_at: null,
        last_checked_at: null,
        failures: 0,
      },
    ]);
    expect(domains[1]).toEqual(pending);
  });

  it('become verified when the DNS shows the record, and are audited with the admin', async () => {
    const { record } = await added(ada, 'audited-domain.example');
    dns.replies.set(record.name, { texts: [record.value] });
    const answer = await verify(ada, 'audited-domain.example');
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ state: 'verified', failures: 0, record });
    expect(Date.parse(answer.json.verified_at)).toBe(Date.parse(answer.json.last_checked_at));
    await removal(ada, 'audited-domain.example');
    const event = { class: 'admin', actor: 'ada@domains.example' };
    const domain = 'audited-domain.example';
    expect(await auditOfDomain(app, domain)).toEqual([
      { ...event, type: 'org_domain_added', details: { domain } },
      { ...event, type: 'org_domain_verified', details: expect.objectContaining({ domain }) },
      { ...event, type: 'org_domain_removed', details: expect.objectContaining({ domain }) },
    ]);
  });

  it('keep their record while they are listed, and get a new one when they are added again', async () => {
    const record = await proven(ada, dns, 'constant.example');
    expect((await verify(ada, 'constant.example')).json.record).toEqual(record);
    expect((await listed(ada, 'constant.example'))?.record).toEqual(record);
    expect((await removal(ada, 'constant.example')).status).toBe(204);
    const again = await added(ada, 'constant.example');
    expect(again.record.value).not.toBe(record.value);
    expect(outcome(await verify(ada, 'constant.example'))).toEqual([409, 'domain_not_proven']);
    expect((await added(eve, 'constant.example')).record.value).not.toBe(again.record.value);
  });

  it('have names in lower case, in ASCII, without a trailing dot, in paths too', async () => {
    expect((await added(ada, ' Bücher.Example. ')).domain).toBe('xn--bcher-kva.example');
    expect(outcome(await add(ada, 'xn--BCHER-kva.example'))).toEqual([409, 'domain_exists']);
    const record = await proven(ada, dns, 'UPPER.example');
    expect(record.name).toBe('_svc-verification.upper.example');
    expect((await removal(ada, 'Upper.EXAMPLE.')).status).toBe(204);
    expect((await removal(ada, 'b%C3%BCcher.example')).status).toBe(204);
  });

  it('are each proven alone: a proof of a domain proves no subdomain', async () => {
    const record = await proven(ada, dns, 'parent.example');
    dns.replies.set('_svc-verification.sub.parent.example', { texts: [record.value] });
    await added(ada, 'sub.parent.example');
    expect(outcome(await verify(ada, 'sub.parent.example'))).toEqual([409, 'domain_not_proven']);
  });

  it.each([
    ['a number', 7],
    ['an empty text', ' '],
    ['null', null],
    ['a list', ['x.example']],
    ['an IPv4 address', '192.0.2.1'],
    ['an IPv4 address in hexadecimal', 'a.0xC0000201'],
    ['an IPv6 address', '2001:db8::1'],
    ['an IPv6 address in brackets', '[::1]'],
    ['a single label', 'localhost'],
    ['a public suffix', 'co.uk'],
    ['a private suffix', 'github.io'],
    ['a top-level domain', 'com'],
    ['a free-mail domain', 'gmail.com'],
    ['a subdomain of a free-mail domain', 'x.gmail.com'],
    ['an address of e-mail', 'ada@x.example'],
    ['a URL', 'https://x.example'],
    ['a port', 'x.example:53'],
    ['a path', 'x.example/a'],
    ['a wildcard', '*.x.example'],
    ['an underscore', '_dmarc.x.example'],
    ['an empty label', 'x..example'],
    ['a leading dot', '.x.example'],
    ['two trailing dots', 'x.example..'],
    ['a hyphen at the start', '-x.example'],
    ['a space', 'x y.example'],
    ['a line break', 'x\n.example'],
    ['a label of 64 characters', `${'x'.repeat(64)}.example`],
    ['a name too long for its record', `${'x.'.repeat(115)}example`],
    ['254 characters', `${'x.'.repeat(123)}example`],
    ['a megabyte', 'x'.repeat(200_000)],
  ])('are refused as %s', async (_, domain) => {
    const answer = await add(ada, domain);
    expect(outcome(answer)).toEqual([400, 'invalid_request']);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(await count(app.dataSource, 'organization_domains WHERE NOT is_primary')).toBe(0);
  });

  it('are refused with a field that does not exist, without one, and with a malformed body', async () => {
    const body = { domain: 'x.example', verified_at: '2026-01-01', token: 'mine', primary: true };
    expect((await orgApi(ada, 'POST', '/domains', body)).status).toBe(400);
    expect((await orgApi(ada, 'POST', '/domains', {})).status).toBe(400);
    expect((await orgApi(ada, 'POST', '/domains', '{')).status).toBe(400);
    for (const domain of ['x\0.example', '\ud800.example', 'a\u202e.example']) {
      expect((await add(ada, domain)).status).toBe(400);
    }
    expect(await count(app.dataSource, 'organization_domains WHERE NOT is_primary')).toBe(0);
  });

  it('20 at once: exactly 10 are added, and the primary domain does not count', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => add(ada, `of-many-${n}.example`)),
    );
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([...Array<number>(10).fill(201), ...Array<number>(10).fill(409)]);
    const refused = answers.filter(({ status }) => status === 409);
    expect(new Set(refused.map(({ json }) => json.code as string))).toEqual(
      new Set(['limit_reached']),
    );
    expect(await count(app.dataSource, 'organization_domains WHERE NOT is_primary')).toBe(10);
    const one = answers.find(({ status }) => status === 201)?.json.domain as string;
    await removal(ada, one);
    expect((await add(ada, 'the-eleventh.example')).status).toBe(201);
  });

  it('20 additions of one at once: one is added, once in the audit log', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => add(ada, 'once.example')));
    const codes = answers.map(({ json }) => (json.code ?? json.state) as string).toSorted();
    expect(codes).toEqual([...Array<string>(19).fill('domain_exists'), 'pending']);
    expect(await auditOfDomain(app, 'once.example')).toHaveLength(1);
  });

  it('cannot lose the primary one by a removal, nor add it again', async () => {
    expect(outcome(await removal(ada, 'domains.example'))).toEqual([409, 'primary_domain']);
    expect(outcome(await add(ada, 'domains.example'))).toEqual([409, 'domain_exists']);
    expect(outcome(await verify(ada, 'domains.example'))).toEqual([409, 'domain_not_proven']);
    expect(await listed(ada, 'domains.example')).toMatchObject({ state: 'verified', proof: null });
  });

  it('cannot lose the one of the own address of the admin', async () => {
    await proven(ada, dns, 'second-admins.example');
    const { client } = await app.enrolled('ben@second-admins.example');
    await rows(
      app.dataSource,
      `UPDATE users SET is_org_admin = true WHERE email = 'ben@second-admins.example'`,
    );
    expect(outcome(await removal(client, 'second-admins.example'))).toEqual([409, 'own_account']);
    expect(outcome(await verify(client, 'second-admins.example'))).toEqual([200, 'verified']);
    expect((await removal(ada, 'second-admins.example')).status).toBe(204);
  });
});

describe('the record of a domain', () => {
  const verifiedWith = async (texts: (value: string) => (string | string[])[]) => {
    const { record } = await added(ada, 'shapes.example');
    dns.replies.set(record.name, { texts: texts(record.value) });
    return verify(ada, 'shapes.example');
  };

  it('is missing: the problem says where nothing was found, and nothing changes', async () => {
    await added(ada, 'missing.example');
    const answer = await verify(ada, 'missing.example');
    expect(outcome(answer)).toEqual([409, 'domain_not_proven']);
    expect(answer.json.detail).toContain('_svc-verification.missing.example');
    expect(await listed(ada, 'missing.example')).toMatchObject({ state: 'pending', failures: 0 });
    dns.replies.set('_svc-verification.missing.example', { texts: [] });
    expect(outcome(await verify(ada, 'missing.example'))).toEqual([409, 'domain_not_proven']);
  });

  it('has other values: the problem shows some of them, cut and clean', async () => {
    const answer = await verifiedWith(() => [
      'v=spf1 -all',
      `long ${'x'.repeat(200)}`,
      'two\nlines\u202e',
      'a fourth',
      'a fifth',
    ]);
    expect(outcome(answer)).toEqual([409, 'domain_not_proven']);
    const { detail } = answer.json;
    expect(detail).toContain('"v=spf1 -all"');
    expect(detail).toContain('and 2 more');
    expect(detail).not.toMatch(/[\n\u202e]|x{81}/);
  });

  it.each<[string, (value: string) => (string | string[])[]]>([
    ['among many others', (value) => [...Array(9).fill('v=spf1 -all'), value, 'svc-verification=']],
    ['in several pieces', (value) => [[value.slice(0, 20), value.slice(20)]]],
    ['beside others that are long', (value) => ['x'.repeat(255), ['y'.repeat(255), 'z'], value]],
  ])('is found %s', async (_, texts) => {
    expect(outcome(await verifiedWith(texts))).toEqual([200, 'verified']);
  });

  it.each<[string, (value: string) => (string | string[])[]]>([
    ['in other letters', (value) => [value.toLowerCase(), value.toUpperCase()]],
    ['with more behind it', (value) => [`${value} `, `${value}x`]],
    ['with more before it', (value) => [` ${value}`]],
    ['without its name', (value) => [value.replace('svc-verification=', '')]],
    ['without its token', () => ['svc-verification=']],
    ['cut', (value) => [value.slice(0, -1)]],
    ['in two records', (value) => [value.slice(0, 20), value.slice(20)]],
    ['between other pieces', (value) => [['x', value]]],
  ])('does not count %s', async (_, texts) => {
    expect(outcome(await verifiedWith(texts))).toEqual([409, 'domain_not_proven']);
    expect(await listed(ada, 'shapes.example')).toMatchObject({ state: 'pending' });
  });

  it('of another organization or another domain does not count', async () => {
    const { record: foreign } = await added(eve, 'foreign.example');
    const { record: other } = await added(ada, 'another.example');
    const { record } = await added(ada, 'foreign.example');
    dns.replies.set(record.name, { texts: [foreign.value, other.value] });
    expect(outcome(await verify(ada, 'foreign.example'))).toEqual([409, 'domain_not_proven']);
    expect(outcome(await verify(eve, 'foreign.example'))).toEqual([200, 'verified']);
  });

  it('may be an alias of a name that has it; a wildcard without the value proves nothing', async () => {
    const { record } = await added(ada, 'alias.example');
    dns.replies.set('*.alias.example', { texts: ['svc-verification=anything'] });
    expect(outcome(await verify(ada, 'alias.example'))).toEqual([409, 'domain_not_proven']);
    dns.replies.set(record.name, { alias: 'proofs.dns.example' });
    expect(outcome(await verify(ada, 'alias.example'))).toEqual([409, 'domain_not_proven']);
    dns.replies.set('proofs.dns.example', { texts: [record.value] });
    expect(outcome(await verify(ada, 'alias.example'))).toEqual([200, 'verified']);
  });

  it('is found in a giant response, over TCP; a giant response without it is a short problem', async () => {
    const giant = Array.from({ length: 200 }, (_, n) => String(n).padEnd(250, 'x'));
    const before = dns.overTcp;
    const answer = await verifiedWith(() => giant);
    expect(outcome(answer)).toEqual([409, 'domain_not_proven']);
    expect(answer.text.length).toBeLessThan(1000);
    const { record } = (await listed(ada, 'shapes.example')) ?? {};
    dns.replies.set(record?.name ?? '', { texts: [...giant, record?.value ?? ''] });
    expect(outcome(await verify(ada, 'shapes.example'))).toEqual([200, 'verified']);
    expect(dns.overTcp).toBe(before + 2);
  });

  it.each([{ rcode: 'SERVFAIL' }, { rcode: 'REFUSED' }, { silent: true }] as const)(
    'is unknown while the DNS answers with %j: 503 with retry-after, and nothing changes',
    async (reply) => {
      const { record } = await added(ada, 'fault.example');
      dns.replies.set(record.name, reply);
      const pending = await verify(ada, 'fault.example');
      expect(outcome(pending)).toEqual([503, 'dns_unavailable']);
      expect(Number(pending.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await listed(ada, 'fault.example')).toMatchObject({ state: 'pending' });
      dns.replies.set(record.name, { texts: [record.value] });
      const { json: verified } = await verify(ada, 'fault.example');
      dns.replies.set(record.name, reply);
      expect(outcome(await verify(ada, 'fault.example'))).toEqual([503, 'dns_unavailable']);
      expect(await listed(ada, 'fault.example')).toEqual(verified);
    },
  );

  it('is missing at a check by an admin: a verified domain stays verified, and no failure counts', async () => {
    const record = await proven(ada, dns, 'stays.example');
    dns.replies.delete(record.name);
    for (let time = 0; time < 4; time += 1) {
      expect(outcome(await verify(ada, 'stays.example'))).toEqual([409, 'domain_not_proven']);
    }
    expect(await listed(ada, 'stays.example')).toMatchObject({ state: 'verified', failures: 0 });
  });
});

describe('a domain that two organizations want', () => {
  it('may be pending for both; the first proof gets it, and the second is refused', async () => {
    const first = await added(ada, 'contested.example');
    const second = await added(eve, 'contested.example');
    const name = first.record.name;
    dns.replies.set(name, { texts: [first.record.value, second.record.value] });
    expect(outcome(await verify(eve, 'contested.example'))).toEqual([200, 'verified']);
    const refused = await verify(ada, 'contested.example');
    expect(outcome(refused)).toEqual([409, 'domain_taken']);
    expect(refused.text).not.toContain('other-domains');
    expect(await listed(ada, 'contested.example')).toMatchObject({ state: 'pending' });
    expect(await listed(eve, 'contested.example')).toMatchObject({ state: 'verified' });
  });

  it('20 proofs at once from both: one organization owns it, and one event says so', async () => {
    const first = await added(ada, 'race.example');
    const second = await added(eve, 'race.example');
    dns.replies.set(first.record.name, { texts: [first.record.value, second.record.value] });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => verify(n % 2 === 0 ? ada : eve, 'race.example')),
    );
    const codes = answers.map(({ json }) => (json.code ?? json.state) as string).toSorted();
    expect(codes).toEqual([
      ...Array<string>(10).fill('domain_taken'),
      ...Array<string>(10).fill('verified'),
    ]);
    const owners = `organization_domains WHERE domain = 'race.example' AND verified_at IS NOT NULL`;
    expect(await count(app.dataSource, owners)).toBe(1);
    const events = await auditOfDomain(app, 'race.example');
    expect(events.filter(({ type }) => type === 'org_domain_verified')).toHaveLength(1);
  });

  it('says nothing about its owner to an organization without the proof', async () => {
    await proven(ada, dns, 'owned.example');
    await added(eve, 'owned.example');
    await added(eve, 'free.example');
    const owned = await verify(eve, 'owned.example');
    const free = await verify(eve, 'free.example');
    expect([owned.status, owned.json.code]).toEqual([free.status, free.json.code]);
  });

  it('goes to the other after its removal, with a proof of its own alone', async () => {
    const record = await proven(ada, dns, 'handed-over.example');
    await added(eve, 'handed-over.example');
    await removal(ada, 'handed-over.example');
    expect(outcome(await verify(eve, 'handed-over.example'))).toEqual([409, 'domain_not_proven']);
    const own = (await listed(eve, 'handed-over.example'))?.record.value ?? '';
    dns.replies.set(record.name, { texts: [record.value, own] });
    expect(outcome(await verify(eve, 'handed-over.example'))).toEqual([200, 'verified']);
    await added(ada, 'handed-over.example');
    expect(outcome(await verify(ada, 'handed-over.example'))).toEqual([409, 'domain_not_proven']);
  });

  it('is 404 for every act of another organization on it, as one that does not exist', async () => {
    await proven(ada, dns, 'private.example');
    const attempts = [
      await verify(eve, 'private.example'),
      await removal(eve, 'private.example'),
      await verify(eve, 'none.example'),
      await removal(eve, 'none.example'),
      await removal(eve, 'not%20a%20domain'),
      await removal(eve, '%00'),
      await verify(eve, 'x'.repeat(300)),
    ];
    expect(attempts.map(outcome)).toEqual(attempts.map(() => [404, 'not_found']));
    expect(new Set(attempts.map(({ json }) => json.detail as string)).size).toBe(1);
    expect(await listed(ada, 'private.example')).toMatchObject({ state: 'verified' });
    expect((await orgApi(eve, 'GET', '/domains')).text).not.toContain('private.example');
  });
});

describe('permission to manage domains', () => {
  const CALLS = [
    ['GET', '/domains', undefined],
    ['POST', '/domains', { domain: 'x.example' }],
    ['POST', '/domains/x.example/verify', {}],
    ['DELETE', '/domains/x.example', undefined],
  ] as const;

  it('is denied without a session: 401; to a user who is not an admin: 403', async () => {
    for (const [method, path, body] of CALLS) {
      expect((await orgApi(app.client(), method, path, body)).status).toBe(401);
      expect(outcome(await orgApi(bob, method, path, body))).toEqual([403, 'admin_required']);
    }
  });

  it('needs a touch of the last 5 minutes for each change, and none to read', async () => {
    const { client } = await app.enrolled('ada@touched-domains.example');
    await rows(
      app.dataSource,
      `UPDATE sessions SET auth_time = now() - interval '301 seconds'
       WHERE user_id = (SELECT id FROM users WHERE email = 'ada@touched-domains.example')`,
    );
    const before = dns.questions.length;
    const answers = await Promise.all(
      CALLS.map(([method, path, body]) => orgApi(client, method, path, body)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 401]);
    expect(answers.slice(1).map(({ json }) => json.code as string)).toEqual(
      Array(3).fill('insufficient_user_authentication'),
    );
    expect(dns.questions).toHaveLength(before);
  });

  it('is denied to an admin who is demoted while the DNS is asked: nothing changes', async () => {
    const { client } = await app.enrolled('carol@demoted-domains.example');
    const { record } = await added(client, 'too-late.example');
    dns.replies.set(record.name, {
      texts: [record.value],
      before: () =>
        app.dataSource.query(
          `UPDATE users SET is_org_admin = false WHERE email = 'carol@demoted-domains.example'`,
        ),
    });
    expect(outcome(await verify(client, 'too-late.example'))).toEqual([403, 'admin_required']);
    const owned = `organization_domains WHERE domain = 'too-late.example' AND verified_at IS NOT NULL`;
    expect(await count(app.dataSource, owned)).toBe(0);
  });

  it('is denied where the domain was removed and added again while the DNS is asked', async () => {
    const { record } = await added(ada, 'replaced.example');
    dns.replies.set(record.name, {
      texts: [record.value],
      before: async () => {
        await removal(ada, 'replaced.example');
        await added(ada, 'replaced.example');
      },
    });
    expect(outcome(await verify(ada, 'replaced.example'))).toEqual([404, 'not_found']);
    expect(await listed(ada, 'replaced.example')).toMatchObject({ state: 'pending' });
  });
});
