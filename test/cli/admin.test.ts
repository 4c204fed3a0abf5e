import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TOPICS } from '../../packages/svc/src/admin/admin.js';
import { COMMANDS } from '../../packages/svc/src/commands.js';
import { ageTouches } from '../support/access-targets.js';
import { furtherAdmin, madeApiToken } from '../support/api-tokens.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { newAddress } from '../support/client.js';
import { DnsServer } from '../support/dns-server.js';
import { assigned, dnsModule, type ListedDomain } from '../support/domains.js';
import '../support/full-scale-only.js';
import { addMember, idOf, orgApi } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';
import { answerOf, keepOpened, openedAddress } from '../support/svc-login.js';
import { SvcHome, type CommandEnd, type RunOptions } from '../support/svc-command.js';

const DOMAIN = 'svc-admin.example';
const SCOPE = 'openid email svc:credentials svc:admin svc:applications';
const ADDED = { domain: `followed.${DOMAIN}` };
/** The byte that a terminal turns into SIGINT. */
const CTRL_C = '\u0003';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let app: TestApp;
let ada: EnrolledUser;
let home: SvcHome;
let dns: DnsServer;
let bob: string;
let foreign: { readonly user: string; readonly application: string };

beforeAll(async () => {
  dns = await DnsServer.start();
  app = await startTestApp({ modules: [dnsModule({ servers: [dns.address], deadline: 1500 })] });
  ada = await app.enrolled(`ada@${DOMAIN}`);
  await app.enrolled('eve@other-admin.example');
  const { clientId } = await addApplication(
    app,
    { client_name: 'Foreign', redirect_uris: ['https://eve.example/callback'] },
    { owner: 'eve@other-admin.example' },
  );
  foreign = { user: await idOf(app, 'eve@other-admin.example'), application: clientId };
  bob = await addMember(app, `ada@${DOMAIN}`, `bob@${DOMAIN}`, { scimManaged: false });
  home = await SvcHome.create();
  keepOpened(home);
  await home.logIn(app, ada, SCOPE);
});
afterAll(async () => {
  await home.remove();
  await app.close();
  await dns.close();
});

/** Options that give each run a client IP address of its own, and so a rate limit of its own. */
const apart = (): RunOptions => ({ env: { TEST_ADDRESS: newAddress() } });

/** Runs `svc admin` without a terminal, as a script does. */
const script = (...args: string[]) => home.run(['admin', ...args], apart());

/** Runs `svc admin` in a terminal in which a person answers. */
const inTerminal = (answer: string, ...args: string[]) =>
  home.runInTerminal(['admin', ...args], { ...apart(), input: answer });

/** Runs `svc admin` in a terminal, and expects exit status 0. Returns the output. */
async function shown(answer: string, ...args: string[]): Promise<string> {
  const end = await inTerminal(answer, ...args);
  expect([args, end.status, end.stdout]).toEqual([args, 0, end.stdout]);
  return end.stdout;
}

async function json<T>(...args: string[]): Promise<T> {
  const end = await script(...args, '--json');
  expect([args, end.status, end.stderr]).toEqual([args, 0, end.stderr]);
  return JSON.parse(end.stdout) as T;
}

/** Runs commands at the same time, because most of their time is the start of Node. */
const all = <T>(runs: readonly T[], run: (one: T) => Promise<unknown>) =>
  Promise.all(runs.map((one) => run(one)));

requires('script').describe('svc admin in a terminal', () => {
  it('has a line of help for each act, and words for the completions', async () => {
    const help = await shown('', '--help');
    for (const [topic, acts] of TOPICS) {
      for (const word of acts.keys()) expect(help).toContain(`svc admin ${topic} ${word}`.trim());
    }
    const ofMembers = await shown('', 'members', '--help');
    expect(ofMembers.match(/svc admin \S+ \S+/g)).toEqual(
      [...(TOPICS.get('members')?.keys() ?? [])].map((word) => `svc admin members ${word}`),
    );
    expect(await shown('', 'nothing', '--help')).toBe(help);
    const entry = COMMANDS.find(({ name }) => name === 'admin');
    expect(entry?.words).toEqual([...TOPICS.keys()]);
    const acts = [...TOPICS].flatMap(([topic, words]) =>
      words.size > 1 ? [[topic, [...words.keys()].join(' ')]] : [],
    );
    expect(entry?.acts).toEqual(Object.fromEntries(acts));
  });

  it('names what is missing, and what it does not know, with status 2', async () => {
    const incomplete = [...TOPICS].flatMap(([topic, acts]) =>
      [...acts].flatMap(([word, { takes = [] }]) => (takes.length > 0 ? [[topic, word]] : [])),
    );
    await all(incomplete, async (args) => {
      const end = await inTerminal('', ...args);
      expect([args, end.status]).toEqual([args, 2]);
      expect(end.stdout).toMatch(/The [A-Z]+ is missing\./);
    });
    await all([[], ['everything'], ['members', 'x'], ['members', 'pass', 'a', 'b']], async (args) =>
      expect([args, (await inTerminal('', ...args)).status]).toEqual([args, 2]),
    );
    const other = ['audit', '--follow', '--person', 'bob'];
    expect((await script(...other)).stderr).toContain('--person does not go with --follow');
    expect((await script('audit', '--since', 'soon')).status).toBe(2);
    expect((await script('domains', 'verify', '..')).status).toBe(2);
  });

  it('without a login says which one is needed, with status 3', async () => {
    const stranger = await SvcHome.create();
    stranger.useServer(app);
    await all([...TOPICS.keys()], async (topic) => {
      const end = await stranger.runInTerminal(['admin', topic]);
      expect([topic, end.status]).toEqual([topic, 3]);
      expect(end.stdout).toContain('Run: svc login --admin');
    });
    await stranger.remove();
  });

  it('refuses what belongs to another organization, and unknown ids, with status 4', async () => {
    const args = [
      ['members', 'show', foreign.user],
      ['members', 'remove', foreign.user, '--yes'],
      ['scim-tokens', 'revoke', UNKNOWN, '--yes'],
      ['applications', 'show', foreign.application],
      ['applications', 'remove', foreign.application, '--yes'],
      ['access', 'show', `application/${foreign.application}`],
      ['access', 'people', `nothing/${UNKNOWN}`],
      ['domains', 'verify', 'other-admin.example'],
    ];
    await all(args, async (each) => {
      const end = await inTerminal('', ...each);
      expect([each, end.status, end.stdout]).toEqual([each, 4, end.stdout]);
    });
    expect(await idOf(app, 'eve@other-admin.example')).toBe(foreign.user);
  });

  it('refuses a member who is no admin any more, with status 4', async () => {
    const carol = await app.enrolled(`carol@${DOMAIN}`);
    const others = await SvcHome.create();
    await shown('y\n', 'members', 'promote', `carol@${DOMAIN}`);
    await others.logIn(app, carol, SCOPE);
    expect((await others.runInTerminal(['admin', 'members'])).status).toBe(0);
    await shown('y\n', 'members', 'demote', `CAROL@${DOMAIN}`);
    const end = await others.runInTerminal(['admin', 'members']);
    expect(end).toMatchObject({ status: 4 });
    await others.remove();
  });
});

requires('script').describe('the acts on members', () => {
  it.concurrent('lists and shows them, by address or by name', async () => {
    const lee = await addMember(app, `ada@${DOMAIN}`, `lee@${DOMAIN}`);
    expect(await shown('', 'members')).toMatch(/ADDRESS +NAME +ROLE/);
    expect(await shown('', 'members', 'list', 'lee', '--role', 'member')).toContain(lee);
    expect(await shown('', 'members', 'show', `lee@${DOMAIN}`)).toContain('managed by SCIM');
    const page = await json<{ members: unknown[]; next: string }>('members', '--limit', '1');
    expect(page.members).toHaveLength(1);
    expect(page.next).toEqual(expect.any(String));
    // Other tests add members at the same time, so the last member of a first page differs each
    // time.
    const { stderr } = await script('members', '--limit', '1');
    const [, after = ''] = /--after (\S+)/.exec(stderr) ?? [];
    const further = await json<typeof page>('members', '--limit', '1', '--after', after);
    expect(further.members).toHaveLength(1);
    const direct = await ada.client.get(`/api/v1/org/members/${lee}`);
    expect(await json('members', 'show', lee)).toEqual(direct.json);
  });

  it.concurrent(
    'asks before a change, shows what ends, and changes nothing without an answer',
    async () => {
      const refused = await script('members', 'deactivate', `bob@${DOMAIN}`);
      expect(refused).toMatchObject({ status: 1, stdout: '' });
      expect(refused.stderr).toContain('add --yes');
      const no = await inTerminal('n\n', 'members', 'deactivate', `bob@${DOMAIN}`);
      expect(no).toMatchObject({ status: 1 });
      expect(no.stdout).toContain('This ends: nothing.');
      expect(await json('members', 'show', bob)).toMatchObject({ active: true });
      expect(await shown('y\n', 'members', 'deactivate', bob)).toContain('is deactivated');
      expect(await shown('y\n', 'members', 'activate', bob)).toContain('is active again');
      expect(await shown('y\n', 'members', 'revoke', bob)).toContain('Ended:');
    },
  );

  it.concurrent(
    'names the candidates of a name that several have, and meets none of them',
    async () => {
      const twins = await Promise.all(
        ['sam1', 'sam2'].map((name) => addMember(app, `ada@${DOMAIN}`, `${name}@${DOMAIN}`)),
      );
      await rows(app.dataSource, "UPDATE users SET name = 'Sam Twin' WHERE id = ANY ($1)", [twins]);
      const end = await inTerminal('', 'members', 'remove', 'sam twin', '--yes');
      expect(end.status).toBe(1);
      for (const id of twins) expect(end.stdout).toContain(id);
      const part = await inTerminal('', 'members', 'remove', 'sam', '--yes');
      expect(part.status).toBe(1);
      expect(part.stdout).toContain('There is no member sam.');
      expect(await json('members', 'show', 'sam1@svc-admin.example')).toMatchObject({
        name: 'Sam Twin',
      });
      await rows(app.dataSource, 'DELETE FROM users WHERE id = ANY ($1)', [twins]);
    },
  );

  it.concurrent(
    'gives a pass alone on standard output, withdraws it, and lifts the demand',
    async () => {
      const pat = await addMember(app, `ada@${DOMAIN}`, `pat@${DOMAIN}`);
      const given = await script('members', 'pass', pat, '--yes');
      expect(given).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\S{20,}\n$/) });
      expect(given.stderr).not.toContain(given.stdout.trim());
      expect(await shown('y\n', 'members', 'pass', pat, '--withdraw')).toContain('no valid pass');
      expect(await shown('y\n', 'members', 'pass', pat, '--lift')).toContain('needs no pass');
      expect((await inTerminal('', 'members', 'pass', pat, '--lift', '--withdraw')).status).toBe(2);
    },
  );

  it.concurrent('names the programs that end with the role or the access of an admin', async () => {
    const maker = await furtherAdmin(app, ada.client, `max@${DOMAIN}`);
    const token = await madeApiToken(maker.client, ['audit:read'], { name: 'Shipper of Max' });
    const { json: receiver } = await orgApi(maker.client, 'POST', '/event-receivers', {
      name: 'SIEM of Max',
      kind: 'webhook',
      url: 'http://127.0.0.1:9/events',
    });
    const record = await shown('', 'members', 'show', maker.id);
    const acts = ['demote', 'deactivate', 'revoke', 'remove', 'pass'];
    const questions = await Promise.all(
      acts.map((act) => inTerminal('n\n', 'members', act, maker.id)),
    );
    for (const text of [record, ...questions.map(({ stdout }) => stdout)]) {
      for (const one of [token, receiver]) expect(text).toContain(one.id);
      expect(text).toContain('Shipper of Max');
      expect(text).toContain('SIEM of Max');
    }
    const [demotion, ...ends] = questions.map(({ stdout }) => stdout);
    expect(demotion).toContain('end after 7 days');
    expect(demotion).not.toContain('Nothing else ends');
    for (const end of ends) expect(end).toMatch(/This ends: .*1 API token/);
    await shown('y\n', 'members', 'demote', maker.id);
    await shown('y\n', 'members', 'promote', maker.id);
    await orgApi(ada.client, 'DELETE', `/api-tokens/${token.id}`);
    await orgApi(ada.client, 'DELETE', `/event-receivers/${receiver.id}`);
    const after = await inTerminal('n\n', 'members', 'demote', maker.id);
    expect(after.stdout).toContain('Nothing else ends.');
  });

  it.concurrent('removes a member, and lets the address in again', async () => {
    const dan = await addMember(app, `ada@${DOMAIN}`, `dan@${DOMAIN}`, { scimManaged: false });
    expect(await json('members', 'remove', dan, '--yes')).toHaveProperty('ended');
    expect((await inTerminal('', 'members', 'show', dan)).status).toBe(4);
    expect(await shown('y\n', 'members', 'readmit', `dan@${DOMAIN}`)).toContain('may sign in');
    expect((await inTerminal('y\n', 'members', 'readmit', `no@${DOMAIN}`)).status).toBe(4);
  });
});

requires('script').describe('the acts on what programs use', () => {
  it.concurrent(
    'makes, rotates and revokes SCIM tokens, each secret once on standard output',
    async () => {
      const made = await script('scim-tokens', 'create', 'Okta', '--days', '30');
      expect(made).toMatchObject({ status: 0, stdout: expect.stringMatching(/^svc_scim_\S+\n$/) });
      expect(made.stderr).not.toContain('svc_scim_');
      const rotated = await json<{ id: string; token: string }>('scim-tokens', 'rotate', 'okta');
      expect(rotated.token).toMatch(/^svc_scim_/);
      const both = await inTerminal('', 'scim-tokens', 'revoke', 'Okta', '--yes');
      expect(both).toMatchObject({ status: 1, stdout: expect.stringContaining(rotated.id) });
      expect(await shown('', 'scim-tokens')).not.toContain('svc_scim_');
      expect(await shown('y\n', 'scim-tokens', 'revoke', rotated.id)).toContain('has ended');
      expect(await shown('y\n', 'scim-tokens', 'revoke', 'Okta')).toContain('no member any more');
      expect((await script('scim-tokens', 'create', 'x', '--days', 'many')).status).toBe(2);
    },
  );

  it.concurrent(
    'makes, rotates and revokes API tokens, each secret once on standard output',
    async () => {
      const reader = ['api-tokens', 'create', 'Shipper', '--scope', 'audit:read', '--days', '30'];
      const made = await script(...reader);
      expect(made).toMatchObject({ status: 0, stdout: expect.stringMatching(/^svc_api_\S+\n$/) });
      const scim = await json<{ id: string }>('scim-tokens', 'create', 'Entra');
      const rotator = [
        '--scope',
        'scim-tokens:rotate',
        '--scim-token',
        'Entra',
        '--cidr',
        '10.0.0.0/8',
      ];
      expect(await json('api-tokens', 'create', 'Rotator', ...rotator)).toMatchObject({
        scim_token_ids: [scim.id],
        allowed_cidrs: ['10.0.0.0/8'],
      });
      await json('api-tokens', 'rotate', 'Rotator', '--overlap', '0', '--days', '9');
      expect(await shown('', 'api-tokens')).toMatch(/Rotator +scim-tokens:rotate/);
      expect((await script('api-tokens', 'revoke', 'Shipper')).status).toBe(1);
      expect(await shown('y\n', 'api-tokens', 'revoke', 'Shipper')).toContain('has ended');
      expect((await inTerminal('', 'api-tokens', 'create', 'x')).status).toBe(2);
      expect((await inTerminal('', 'api-tokens', 'revoke', UNKNOWN, '--yes')).status).toBe(4);
    },
  );

  it.concurrent('registers, approves and removes applications, with their secrets', async () => {
    const body = { name: 'Orders', type: 'web', redirect_uris: ['https://o.example/cb'] };
    const made = await script('applications', 'register', '--data', JSON.stringify(body));
    expect(made).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\S{20,}\n$/) });
    expect(await shown('', 'applications')).toContain('Orders');
    expect(await shown('', 'applications', 'show', 'orders')).toContain('https://o.example/cb');
    const added = await json<{ id: string }>('applications', 'add-secret', 'Orders', '--days', '9');
    expect(await shown('', 'applications', 'secrets', 'Orders')).toContain(added.id);
    const end = await shown('y\n', 'applications', 'revoke-secret', 'Orders', added.id);
    expect(end).toContain('has ended');
    expect(await shown('y\n', 'applications', 'approve', 'Orders')).toContain('is approved');
    expect(await shown('y\n', 'applications', 'revoke-tokens', 'Orders')).toContain('Ended: 0');
    expect(await shown('y\n', 'applications', 'remove', 'Orders')).toContain('is removed');
    expect((await inTerminal('', 'applications', 'show', 'Orders')).status).toBe(4);
    expect((await script('applications', 'register', '--data', '@/nowhere')).status).toBe(2);
  });

  it.concurrent('shows who gains and who loses a target before it changes the rule', async () => {
    const resource = `https://prod.${DOMAIN}`;
    await assigned(app, `ada@${DOMAIN}`, DOMAIN);
    const cluster = { name: 'Production', type: 'kubernetes', resource };
    await json('applications', 'register', '--data', JSON.stringify(cluster));
    expect(await shown('', 'access')).toContain('Production');
    const seen = await shown('y\n', 'access', 'assign', 'production', '--user', `bob@${DOMAIN}`);
    expect(seen).toContain('Lose access: ');
    expect(seen).toContain(`ada@${DOMAIN}`);
    expect(await shown('', 'access', 'show', 'Production')).toContain(bob);
    expect(await shown('', 'access', 'people', 'Production')).toContain('Admitted: 1');
    expect(await shown('', 'access', 'check', `ada@${DOMAIN}`, 'Production')).toContain(
      'not reach',
    );
    const refused = await script('access', 'unassign', 'Production', '--user', bob);
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    await shown('y\n', 'access', 'unassign', 'Production', '--user', bob);
    await shown('y\n', 'access', 'everyone', 'Production');
    const rule = { access: 'assigned', conditions: {}, assignments: [] };
    await shown('y\n', 'access', 'set', 'Production', '--data', JSON.stringify(rule));
    expect(await shown('', 'access', 'export')).toContain('Production');
    expect((await inTerminal('', 'access', 'assign', 'Production')).status).toBe(2);
  });

  it.concurrent('adds and removes domains, with the record that proves them', async () => {
    const domain = `more.${DOMAIN}`;
    expect(await shown('', 'domains', 'add', domain)).toContain('TXT');
    expect(await shown('', 'domains')).toContain(domain);
    expect((await inTerminal('', 'domains', 'verify', domain)).status).toBe(4);
    const { domains } = await json<{ domains: ListedDomain[] }>('domains');
    const added = domains.find((one) => one.domain === domain);
    dns.replies.set(added?.record.name ?? '', { texts: [added?.record.value ?? ''] });
    expect(await shown('', 'domains', 'verify', domain)).toContain('is verified');
    expect((await script('domains', 'remove', domain)).status).toBe(1);
    expect(await shown('y\n', 'domains', 'remove', domain)).toContain('is removed');
  });
});

requires('script').describe('svc admin audit', () => {
  it('prints the newest events at the end, by time and type, or the page of the API', async () => {
    const text = await shown('', 'audit', '--since', '1h', '--type', 'admin_promote');
    expect(text).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +admin_promote +ada@/m);
    const page = await json<{ events: { type: string }[] }>('audit', '--limit', '2');
    expect(page.events).toHaveLength(2);
    expect((await inTerminal('', 'audit', '--type', 'nothing')).status).toBe(4);
  });

  it('follows the log: each later event once, and Ctrl-C ends it with status 130', async () => {
    let isAdded = false;
    const running = home.runInTerminal(['admin', 'audit', '--follow', '--since', '1h', '--json'], {
      ...apart(),
      started(child) {
        child.stdout?.on('data', (chunk) => {
          if (!isAdded) void ada.client.post('/api/v1/org/domains', ADDED);
          isAdded = true;
          if (String(chunk).includes(ADDED.domain)) child.stdin?.write(CTRL_C);
        });
      },
    });
    const end = await running;
    expect(end.status).toBe(130);
    const printed = end.stdout.match(/^\{.*\}/gm) ?? [];
    expect(printed.length).toBeGreaterThan(1);
    expect(new Set(printed).size).toBe(printed.length);
  });
});

requires('script').describe('svc api', () => {
  const api = (...args: string[]) => home.runInTerminal(['api', ...args], apart());

  it('sends a request and prints the answer as it is', async () => {
    const direct = await ada.client.get('/api/v1/org');
    const end = await home.run(['api', 'get', '/api/v1/org'], apart());
    expect(end).toMatchObject({ status: 0, stdout: `${direct.text}\n` });
    const data = join(home.path, 'body.json');
    writeFileSync(data, JSON.stringify({ name: 'Acme' }));
    expect((await api('PATCH', '/api/v1/org', '--data', `@${data}`)).stdout).toContain('Acme');
    const input = JSON.stringify({ name: 'Acme 2' });
    const args = ['api', 'PATCH', '/api/v1/org', '--data', '@-'];
    expect((await home.run(args, { ...apart(), input })).stdout).toContain('Acme 2');
    expect((await api('PATCH', '/api/v1/org', '--data', '{}', '--if-match', '"x"')).status).toBe(4);
  });

  it('sends the token to no other server, and to no path outside of the API', async () => {
    const paths = [
      '//evil.example/v1/x',
      '/\\evil.example/v1/x',
      'https://evil.example/v1/',
      '/v1/../x',
    ];
    const ends = await Promise.all(paths.map((path) => api('GET', path)));
    expect(ends.map(({ status }) => status)).toEqual(paths.map(() => 2));
  });

  it('names what is missing, and what the server refuses', async () => {
    expect((await api()).stdout).toContain('The METHOD is missing.');
    expect((await api('GET')).stdout).toContain('The PATH is missing.');
    expect((await api('SEND', '/v1/keys')).status).toBe(2);
    expect((await api('POST', '/v1/keys', '--data', '{')).status).toBe(2);
    expect((await api('GET', `/api/v1/org/members/${foreign.user}`)).status).toBe(4);
  });

  it('needs no rights of an admin for /v1', async () => {
    const plain = await SvcHome.create();
    await plain.logIn(app, ada);
    expect((await plain.run(['api', 'GET', '/v1/keys'])).status).toBe(0);
    const end = await plain.run(['api', 'GET', '/api/v1/org']);
    expect(end).toMatchObject({ status: 3, stderr: expect.stringContaining('login --admin') });
    plain.writeState(app, 'admin-token.json', {
      access_token: 'x',
      scope: 'svc:admin',
      expires_at: '2020-01-01T00:00:00Z',
      user: { id: 'a' },
    });
    expect((await plain.run(['api', 'GET', '/v1/keys'])).status).toBe(0);
    await plain.remove();
  });
});

requires('script').describe('a touch in the middle of a command', () => {
  /** Runs a command that needs a fresh touch, and lets a person touch the key in the browser. */
  async function touched(
    args: readonly string[],
    answer: string,
    person: EnrolledUser,
  ): Promise<CommandEnd> {
    const running = home.runInTerminal(args, {
      ...apart(),
      started: (child) => void child.stdin?.write(answer), // no `end`: the input stays open
    });
    await fetch(await answerOf(app, person, await openedAddress(home)));
    return running;
  }

  it('leads through the browser, and then the same command goes on', async () => {
    await ageTouches(app, `ada@${DOMAIN}`, 400);
    const refused = await script('members', 'deactivate', bob, '--yes');
    expect(refused).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('svc login --admin'),
    });
    const end = await touched(['admin', 'members', 'deactivate', bob], 'y\n', ada);
    expect(end.stdout).toContain('fresh touch');
    expect(end).toMatchObject({ status: 0, stdout: expect.stringContaining('is deactivated') });
    await shown('y\n', 'members', 'activate', bob);
  });

  it('is asked for also with --json, and after the token has expired', async () => {
    const path = home.state(app, 'admin-token.json');
    home.writeState(app, 'admin-token.json', {
      ...readJson(path),
      expires_at: '2026-01-01T00:00:00Z',
    });
    expect((await script('domains')).status).toBe(3);
    const end = await touched(['admin', 'domains', '--json'], '', ada);
    expect(end).toMatchObject({ status: 0, stdout: expect.stringContaining('"domains"') });
  });

  it('ends the command if another user touches a key there', async () => {
    const eve = await app.enrolled('ida@third-admin.example');
    await ageTouches(app, `ada@${DOMAIN}`, 400);
    const end = await touched(['admin', 'scim-tokens', 'create', 'X'], '', eve);
    expect(end).toMatchObject({ status: 4, stdout: expect.stringContaining('Another user') });
    const tokens = await rows(app.dataSource, "SELECT FROM scim_tokens WHERE description = 'X'");
    expect(tokens).toEqual([]);
    await home.logIn(app, ada, SCOPE);
  });
});

function readJson(path: string): object {
  return JSON.parse(readFileSync(path, 'utf8')) as object;
}
