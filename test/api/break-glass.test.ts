import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEPLOYMENT } from '#domain/audit/seal/checkpoint.js';
import { ExportCheck } from '../../packages/svc/src/audit/export-check.js';
import { sealSecret } from '../../src/platform/crypto/sealed-secret.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import {
  adminCommand,
  adminProcess,
  handTo,
  renameProvider,
  securityLines,
} from '../support/break-glass.js';
import { newAddress, type Client } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { postForm } from '../support/oauth-flow.js';
import { idOf, orgApi } from '../support/org-api.js';
import { enrollWith, passGround, signedIn } from '../support/passes.js';
import { count, rows } from '../support/rows.js';
import { TestSeal } from '../support/seal.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

let database: TestDatabase;
let app: TestApp;
beforeAll(async () => {
  database = await createTestDatabase();
  // Each change waits for the next heartbeat of the service, so that heartbeats are frequent.
  app = await startTestApp({ database, failoverLimits: { heartbeat: 20 } });
  // The command accepts only a database of production. The running application has checked for one
  // of the tests already, at its start.
  await handTo(app.dataSource, 'production');
});
afterAll(async () => {
  await app.close();
  await database.drop();
});

let grounds = 0;
const ground = () => passGround(app, `glass-${(grounds += 1)}.example`);
const optionsOf = (input?: string, environment = {}) => ({
  url: database.url,
  environment,
  ...(input === undefined ? {} : { input }),
});
const admin = (args: readonly string[], input?: string, environment = {}) =>
  adminCommand(args, optionsOf(input, environment));
/**
 * Runs the command as a process of its own, which is slow. Tests do so for one command that prints,
 * one that reads input, one refusal and one wrong usage.
 */
const adminByNode = (args: readonly string[], input?: string, environment = {}) =>
  adminProcess(args, optionsOf(input, environment));

const me = { os_user: userInfo().username, os_uid: process.getuid?.(), host: hostname() };
const acts = (userId: string) =>
  rows<{ type: string; actor_id: string | null; org_id: string; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT type, actor_id, org_id, details FROM audit_events
     WHERE subject_id = $1 AND details ->> 'by' = 'operator' ORDER BY id`,
    [userId],
  );

describe('node dist/admin.js beside the running service', () => {
  it('lists the admins of every organization, and of one', async () => {
    const { domain, ids } = await ground();
    await ground();
    const all = await adminByNode(['list-admins', '--json']);
    expect(all.status).toBe(0);
    const { admins } = JSON.parse(all.stdout) as { admins: { email: string }[] };
    expect(admins.length).toBeGreaterThanOrEqual(2);
    const one = await admin(['list-admins', '--org', domain, '--json']);
    expect(JSON.parse(one.stdout)).toMatchObject({
      admins: [
        {
          id: ids.ada,
          email: `ada@${domain}`,
          can_act: true,
          keys: 1,
          organization: { domains: [domain] },
        },
      ],
    });
    const text = await admin(['list-admins', '--org', domain]);
    expect(text.stdout).toContain(`ada@${domain}`);
    expect(text.stdout.trim().split('\n')).toHaveLength(1);
  });

  it('writes the tree of the deployment into a new file, which checkpoints prove', async () => {
    const seal = new TestSeal(app.dataSource);
    await rows(
      app.dataSource,
      "INSERT INTO audit_events (id, type, class) VALUES (gen_random_uuid(), 'logout', 'auth')",
    );
    await seal.seal();
    const folder = await mkdtemp(join(tmpdir(), 'sealed-export-'));
    const file = join(folder, 'export.ndjson');
    try {
      const end = await adminByNode(['sealed-export', '--to', file]);
      expect(end).toMatchObject({ status: 0, stdout: expect.stringMatching(/: \d+ lines\n$/) });
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
      // The signatures are not checked (`[]`), because the running service may have signed some
      // checkpoints by its own key.
      const check = new ExportCheck(await seal.checkpoints(DEPLOYMENT), [], Date.now(), undefined);
      for (const line of lines) check.line(Buffer.from(line));
      check.end();
      expect(check.findings).toEqual([]);
      expect([check.counts.rows > 0, check.provenAt]).toEqual([true, expect.stringMatching(/^20/)]);
      expect(await admin(['sealed-export', '--to', file])).toMatchObject({ status: 1 });
      expect(await admin(['sealed-export'])).toMatchObject({ status: 2 });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('makes an active member an admin, whose next request is one of an admin', async () => {
    const { domain, bob, ids } = await ground();
    expect((await orgApi(bob, 'GET', '/members')).status).toBe(403);
    const made = await adminByNode(['make-admin', `bob@${domain}`], `bob@${domain}\n`, {
      SUDO_USER: 'olga',
    });
    expect(made).toMatchObject({ status: 0, stdout: `bob@${domain} is an admin now.\n` });
    const { members } = (await orgApi(bob, 'GET', '/members')).json;
    expect(members).toHaveLength(2);
    expect(await acts(ids.bob)).toMatchObject([
      {
        type: 'admin_promote',
        actor_id: null,
        details: { email: `bob@${domain}`, by: 'operator', claimed_user: 'olga', ...me },
      },
    ]);
    expect(securityLines(made)).toMatchObject([
      { level: 'warn', act: 'make-admin', user_id: ids.bob, claimed_user: 'olga', ...me },
    ]);
    const again = await admin(['make-admin', `bob@${domain}`, '--yes']);
    expect(again).toMatchObject({ status: 0, stdout: `bob@${domain} is an admin already.\n` });
    expect(await acts(ids.bob)).toHaveLength(1);
    expect(securityLines(again)).toEqual([]);
  });

  it('revokes everything of a person at once, and the audit log of the organization has it', async () => {
    const { domain, ada, bob, bobKey, ids } = await ground();
    const body = { public_key: newPublicKeyLine() };
    const { serial } = (await bob.post('/v1/credentials/ssh', body)).json;
    const owner = `bob@${domain}`;
    const metadata = {
      redirect_uris: [],
      response_types: [],
      grant_types: ['client_credentials'],
    };
    const { clientId, clientSecret } = await addApplication(app, metadata, { owner });
    const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
    const form = { grant_type: 'client_credentials' };
    const ask = () => postForm(app, '/oauth/token', form, { authorization: `Basic ${basic}` });
    expect((await ask()).status).toBe(200);
    const ended = await admin(['revoke-everything', `bob@${domain}`, '--yes', '--json']);
    expect(ended.status).toBe(0);
    expect(JSON.parse(ended.stdout)).toMatchObject({
      changed: true,
      ended: { sessions: 1, certificates: 1, keys: 1, tokens: 1 },
    });
    expect((await ask()).status).toBe(400);
    expect(await count(app.dataSource, 'oauth_artifacts WHERE client_id = $1', [clientId])).toBe(0);
    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect((await app.client().logIn(bobKey)).status).toBe(400);
    const revoked = await app.client().get(`/v1/credentials/ssh/krl/${serial}`);
    expect(revoked.json).toMatchObject({ revoked: true });
    const { events } = (await orgApi(ada, 'GET', '/audit-events')).json;
    const event = events.find(
      ({ type, subject_id: subject }: Record<string, unknown>) =>
        type === 'admin_revoke_credentials' && subject === ids.bob,
    );
    expect(event).toMatchObject({ details: { by: 'operator', ...me, sessions: 1, keys: 1 } });
  });

  it('gives the sole admin a pass, which alone goes to standard output', async () => {
    const { domain, ada, adaKey, ids } = await ground();
    const address = `ada@${domain}`;
    const given = await adminByNode(['give-pass', address], `${address}\n`);
    expect(given.status).toBe(0);
    const pass = given.stdout.trim();
    expect(pass).toMatch(/^svc_pass_[\w-]{43}$/);
    expect(given.stderr).not.toContain(pass);
    expect(given.stderr).toContain('1 security key');
    const stored = await rows(app.dataSource, 'SELECT * FROM audit_events');
    expect(JSON.stringify(stored)).not.toContain(pass);

    expect((await orgApi(ada, 'GET', '/members')).status).toBe(401);
    expect((await app.client().logIn(adaKey)).status).toBe(400);
    const browser = await signedIn(app, address);
    expect((await enrollWith(app, browser, app.newKey())).json.code).toBe(
      'enrollment_pass_required',
    );
    expect((await enrollWith(app, browser, app.newKey(), pass)).status).toBe(200);
    expect((await orgApi(browser, 'GET', '/members')).status).toBe(200);
    expect(await acts(ids.ada)).toMatchObject([
      { type: 'enrollment_pass_created', actor_id: null, details: { keys: 1, ...me } },
    ]);
  });

  it('tells two people with one address apart by the organization', async () => {
    const { domain, ids } = await ground();
    const other = await ground();
    const address = `bob@${domain}`;
    await rows(app.dataSource, 'UPDATE users SET email = $1 WHERE id = $2', [
      address,
      other.ids.bob,
    ]);
    const refused = await admin(['revoke-everything', address, '--yes']);
    expect(refused).toMatchObject({ status: 1, stdout: '' });
    expect(refused.stderr).toContain(domain);
    expect(refused.stderr).toContain(other.domain);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [ids.bob])).toBe(1);
    const done = await admin(['revoke-everything', address, '--org', other.domain, '--yes']);
    expect(done.status).toBe(0);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [ids.bob])).toBe(1);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [other.ids.bob])).toBe(
      0,
    );
  });
  it('reconcile ends the access of all once the word is typed, and the next login needs both', async () => {
    const { domain, bob, bobKey } = await ground();
    const refused = await admin(['reconcile'], 'yes\n');
    expect([refused.status, refused.stderr.includes('Nothing was changed')]).toEqual([1, true]);
    expect((await bob.get('/v1/keys')).status).toBe(200);
    const { json } = await bob.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const done = await adminByNode(['reconcile', '--json'], 'reconcile\n');
    expect([done.status, done.stderr]).toEqual([0, expect.any(String)]);
    expect(JSON.parse(done.stdout)).toMatchObject({ command: 'reconcile', changed: true });
    expect(securityLines(done).at(-1)).toMatchObject({ act: 'reconcile', ...me });
    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect((await app.client().get(`/v1/credentials/ssh/krl/${json.serial}`)).json).toMatchObject({
      revoked: true,
    });
    expect((await app.client().logIn(bobKey)).status).toBe(403);
    const again = app.client();
    await again.signIn(`bob@${domain}`);
    expect((await again.logIn(bobKey)).status).toBe(200);
    const audited =
      "audit_events WHERE type = 'reconciliation_ordered' AND details ->> 'by' = 'operator'";
    expect(await count(app.dataSource, audited)).toBe(1);
  });
});

describe('a command that changes something changes nothing', () => {
  const untouched = async (id: string) => {
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [id])).toBe(1);
    expect(await count(app.dataSource, 'enrollment_passes WHERE user_id = $1', [id])).toBe(0);
    expect(await acts(id)).toEqual([]);
  };

  it('without the address typed, or with another one', async () => {
    const { domain, ids } = await ground();
    const closed = await adminByNode(['give-pass', `bob@${domain}`]);
    expect(closed).toMatchObject({ status: 1, stdout: '' });
    const tries = [
      ['make-admin', undefined],
      ['revoke-everything', '\n'],
      ['give-pass', undefined],
      ['give-pass', 'yes\n'],
      ['give-pass', `ada@${domain}\n`],
    ] as const;
    for (const [name, input] of tries) {
      const refused = await admin([name, `bob@${domain}`], input);
      expect(refused, `${name} ${input}`).toMatchObject({ status: 1, stdout: '' });
      expect(securityLines(refused)).toEqual([]);
    }
    await untouched(ids.bob);
  });

  it('for an unknown address, another organization, or wrong usage', async () => {
    const { domain, ids } = await ground();
    expect((await admin(['give-pass', `nobody@${domain}`, '--yes'])).status).toBe(1);
    expect((await admin(['give-pass', 'no address', '--yes'])).status).toBe(1);
    const elsewhere = ['give-pass', `bob@${domain}`, '--org', 'other.example', '--yes'];
    expect((await admin(elsewhere)).status).toBe(1);
    for (const args of [[], ['give-pass'], ['destroy'], ['make-admin', 'a', 'b'], ['--nope']]) {
      expect((await admin(args)).status, args.join(' ')).toBe(2);
    }
    expect((await adminByNode(['destroy'])).status).toBe(2);
    await untouched(ids.bob);
  });

  it('makes no admin of a deactivated member, of a foreign address, or of a person without organization', async () => {
    const { domain, ada, ids } = await ground();
    await orgApi(ada, 'POST', `/members/${ids.bob}/deactivate`);
    expect((await admin(['make-admin', `bob@${domain}`, '--yes'])).status).toBe(1);
    expect((await admin(['give-pass', `bob@${domain}`, '--yes'])).status).toBe(1);
    await orgApi(ada, 'POST', `/members/${ids.bob}/activate`);
    await rows(app.dataSource, "UPDATE users SET email = 'bob@foreign.example' WHERE id = $1", [
      ids.bob,
    ]);
    expect((await admin(['make-admin', 'bob@foreign.example', '--yes'])).status).toBe(1);
    await app.enrolled('outsider@gmail.com');
    expect((await admin(['make-admin', 'outsider@gmail.com', '--yes'])).status).toBe(1);
    expect(await count(app.dataSource, 'users WHERE id = $1 AND is_org_admin', [ids.bob])).toBe(0);
  });

  it('on the database of another composition, or of an earlier or later version', async () => {
    const { domain, ids } = await ground();
    await handTo(app.dataSource, 'test');
    const foreign = await admin(['give-pass', `bob@${domain}`, '--yes']);
    await handTo(app.dataSource, 'production');
    expect(foreign).toMatchObject({ status: 1, stdout: '' });
    expect(foreign.stderr).toContain('composition');
    const name = '1763788050000-enrollment-passes.sql';
    const [kept] = await rows<{ sha256: string }>(
      app.dataSource,
      'DELETE FROM schema_migrations WHERE name = $1 RETURNING sha256',
      [name],
    ).then(([deleted]) => deleted as unknown as { sha256: string }[]);
    const older = await admin(['give-pass', `bob@${domain}`, '--yes']);
    await rows(app.dataSource, 'INSERT INTO schema_migrations (name, sha256) VALUES ($1, $2)', [
      name,
      kept?.sha256,
    ]);
    expect(older).toMatchObject({ status: 1, stdout: '' });
    const later = '9763788050000-another-kind-of-access.sql';
    await rows(app.dataSource, "INSERT INTO schema_migrations VALUES ($1, 'x')", [later]);
    const partial = await admin(['revoke-everything', `bob@${domain}`, '--yes']);
    await rows(app.dataSource, 'DELETE FROM schema_migrations WHERE name = $1', [later]);
    expect(partial).toMatchObject({ status: 1, stdout: '' });
    expect(partial.stderr).toContain(later);
    await untouched(ids.bob);
  });
});

/**
 * Marks the database of a stopped application as one for tests again, so that the application can
 * start on it.
 */
async function handBack(url: string): Promise<void> {
  const dataSource = new DataSource({ type: 'postgres', url });
  await dataSource.initialize();
  await handTo(dataSource, 'test');
  await dataSource.destroy();
}

interface OperatorsEvent {
  readonly id: string;
  readonly type: string;
  readonly details: Record<string, unknown>;
}

/** The sentence of the audit log about each act of an operator, by the type of its event. */
const WORDS: Readonly<Record<string, (operator: string, member: string) => string>> = {
  enrollment_pass_created: (operator, member) =>
    `${operator} gave ${member} a pass to enroll a key`,
  admin_promote: (operator, member) => `${operator} made ${member} an admin`,
  admin_revoke_credentials: (operator, member) =>
    `${operator} revoked the keys and credentials of ${member}`,
};

/**
 * Checks that the list of the audit log and the page of each event show an admin the sentence about
 * the act. The sentence names the operating-system user.
 */
async function expectOnPages(
  reader: Client,
  events: readonly OperatorsEvent[],
  domain: string,
): Promise<void> {
  const read = async (path: string) => {
    const { status, text } = await reader.get(path, { address: newAddress() });
    expect(status, path).toBe(200);
    return text.replaceAll(/<\/?bdi>/g, '');
  };
  const table = await read('/admin/audit?type=changes');
  for (const { id, type, details } of events) {
    const sentence = WORDS[type]?.(`The operator ${me.os_user}`, String(details['email'])) ?? type;
    expect(details['email']).toMatch(new RegExp(`^(?:ada|bob)@${domain}$`));
    const row = table.split('<tr>').find((one) => one.includes(`/admin/audit/${id}"`));
    expect(row, type).toContain(sentence);
    const page = await read(`/admin/audit/${id}`);
    expect(page).toContain(sentence);
    for (const [name, value] of Object.entries(me)) {
      expect(page, name).toContain(`<dt>${name}</dt><dd>${value}</dd>`);
    }
  }
}

describe('with the service down', () => {
  it('every act works, and is on the audit pages of the organization afterwards', async () => {
    const own = await createTestDatabase();
    const environment = { SVC_SSH_CA_KEY_PATH: `${own.config.dataDir}/ssh_ca_key` };
    const first = await startTestApp({ database: own, environment });
    const domain = 'down.example';
    const ids = (await passGround(first, domain)).ids;
    await handTo(first.dataSource, 'production');
    await first.close();

    const options = { url: own.url };
    expect((await adminCommand(['list-admins'], options)).stdout).toContain(`ada@${domain}`);
    const revoke = ['revoke-everything', `bob@${domain}`, '--yes'];
    expect((await adminProcess(revoke, options)).status).toBe(0);
    for (const args of [
      ['make-admin', `bob@${domain}`, '--yes'],
      ['give-pass', `bob@${domain}`, '--yes'],
    ]) {
      expect((await adminCommand(args, options)).status, args.join(' ')).toBe(0);
    }
    const { stdout, stderr } = await adminCommand(
      ['give-pass', `ada@${domain}`, '--yes', '--json'],
      options,
    );
    expect(stderr).toContain('No running process of the service has seen this change');
    const { pass } = JSON.parse(stdout) as { pass: string };

    await handBack(own.url);
    const again = await startTestApp({ database: own, environment });
    try {
      await renameProvider(again);
      const browser = await signedIn(again, `ada@${domain}`);
      expect((await enrollWith(again, browser, again.newKey(), pass)).status).toBe(200);
      const { events } = (await orgApi(browser, 'GET', '/audit-events')).json as {
        events: OperatorsEvent[];
      };
      const operators = events.filter(({ details }) => details['by'] === 'operator');
      expect(operators.map(({ type }) => type)).toEqual([
        'enrollment_pass_created',
        'enrollment_pass_created',
        'admin_promote',
        'admin_revoke_credentials',
      ]);
      for (const { details } of operators) expect(details).toMatchObject(me);
      await expectOnPages(browser, operators, domain);
      expect(await idOf(again, `bob@${domain}`)).toBe(ids.bob);
    } finally {
      await again.close();
      await own.drop();
    }
  });
});

describe('node dist/admin.js domains', () => {
  const ownerOf = async (domain: string) =>
    (
      await rows<{ org_id: string }>(
        app.dataSource,
        'SELECT org_id FROM organization_domains WHERE domain = $1 AND verified_at IS NOT NULL',
        [domain],
      )
    )[0]?.org_id;
  const eventsOf = (domain: string) =>
    rows<{ type: string; actor_id: string | null; details: Record<string, unknown> }>(
      app.dataSource,
      `SELECT type, actor_id, details FROM audit_events WHERE details ->> 'domain' = $1 ORDER BY id`,
      [domain],
    );

  it('lists the domains of every organization, and of one, with their proofs', async () => {
    const { domain } = await ground();
    const one = await admin(['domains', '--org', domain, '--json']);
    expect(one.status).toBe(0);
    const orgId = await ownerOf(domain);
    expect(JSON.parse(one.stdout)).toEqual({
      domains: [
        {
          domain,
          organization: { id: orgId, name: domain },
          primary: true,
          owned: true,
          proof: null,
          users: 2,
        },
      ],
    });
    const all = await admin(['domains', 'list']);
    const line = all.stdout.split('\n').find((each) => each.startsWith(`${domain} `));
    expect(line).toContain('only asserted by a sign-in');
    expect(line).toContain(orgId);
  });

  it('releases a domain once its name is typed: what stood on it ends, and one row says so', async () => {
    const { domain, ada, bob } = await ground();
    const orgId = await ownerOf(domain);
    const refused = await admin(['domains', 'release', domain], 'another.example\n');
    expect(refused.status).toBe(1);
    expect((await bob.get('/v1/keys')).status).toBe(200);
    expect((await admin(['domains', 'release', domain])).status).toBe(1);
    const done = await adminByNode(['domains', 'release', domain], `${domain}\n`, {
      SUDO_USER: 'olga',
    });
    expect(done).toMatchObject({ status: 0, stdout: `${domain} is released.\n` });
    expect(done.stderr).toContain('2 sessions');
    for (const browser of [ada, bob]) expect((await browser.get('/v1/keys')).status).toBe(401);
    expect(await ownerOf(domain)).toBeUndefined();
    const events = await eventsOf(domain);
    const unbound = events.filter(({ type }) => type === 'identity_unbound');
    const byOperator = { actor_id: null, details: { by: 'operator', ...me } };
    expect(unbound).toMatchObject([byOperator, byOperator]);
    expect(events.filter((event) => !unbound.includes(event))).toMatchObject([
      {
        type: 'domain_released',
        actor_id: null,
        details: { by: 'operator', users: 2, sessions: 2, claimed_user: 'olga', ...me },
      },
    ]);
    expect(securityLines(done).at(-1)).toMatchObject({
      act: 'domains release',
      domain,
      org_id: orgId,
      claimed_user: 'olga',
      ...me,
    });
    expect((await admin(['domains', 'release', domain, '--yes'])).status).toBe(1);
  });

  it('assigns a domain as proven, also from an organization that only asserted it', async () => {
    const { domain, bob } = await ground();
    const other = await ground();
    const target = await ownerOf(other.domain);
    const args = ['domains', 'assign', domain.toUpperCase(), '--org', other.domain];
    const done = await admin([...args, '--yes', '--json']);
    expect(done.status).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({
      command: 'domains assign',
      changed: true,
      domain,
      organization: target,
      ended: { users: 2, sessions: 2 },
    });
    expect(await ownerOf(domain)).toBe(target);
    expect((await bob.get('/v1/keys')).status).toBe(401);
    const listed = await admin(['domains', '--org', other.domain]);
    expect(listed.stdout).toContain('assigned by the operator');
    const again = await admin([...args, '--yes']);
    expect(again).toMatchObject({
      status: 0,
      stdout: `${domain} is assigned to this organization already.\n`,
    });
    const back = ['domains', 'assign', domain, '--org', (await ground()).domain, '--yes'];
    expect(await admin(back)).toMatchObject({ status: 1, stdout: '' });
    expect(await ownerOf(domain)).toBe(target);
  });

  it.each([
    ['domains', 'release'],
    ['domains', 'steal', 'x.example'],
    ['domains', 'assign', 'x.example'],
    ['domains', 'release', 'x.example', '--org', 'y.example'],
    ['domains', 'list', 'x.example'],
    ['domains', '--yes'],
  ])('is wrong usage: %s %s %s', async (...args) => {
    expect((await admin(args)).status).toBe(2);
  });

  it('refuses a domain that strangers share, and an organization that is not there', async () => {
    const { domain } = await ground();
    const shared = await admin(['domains', 'assign', 'gmail.com', '--org', domain, '--yes']);
    expect(shared).toMatchObject({ status: 1, stdout: '' });
    const nowhere = ['domains', 'assign', 'fresh.example', '--org', 'none.example', '--yes'];
    expect(await admin(nowhere)).toMatchObject({ status: 1, stdout: '' });
  });
});

describe('check', () => {
  it('is healthy with a whole configuration, and names what is wrong without values', async () => {
    const { providers } = app.config.upstream;
    const [provider] = providers;
    const issuer = provider?.type === 'oidc' ? provider.issuer : '';
    const sealed = await sealSecret(app.config.secrets, 'token signing key ec', 'a key');
    await rows(app.dataSource, "INSERT INTO token_signing_keys (kind, sealed) VALUES ('ec', $1)", [
      sealed,
    ]);
    const environment = {
      SVC_BASE_URL: app.config.http.baseUrl,
      SVC_JWT_SECRET: 'a secret of the tests that is long enough',
      SVC_IDPS: 'demo',
      SVC_IDP_DEMO_TYPE: 'oidc',
      SVC_IDP_DEMO_ISSUER: issuer,
      SVC_IDP_DEMO_CLIENT_ID: 'svc',
      SVC_IDP_DEMO_CLIENT_SECRET: 'hush-hush',
    };
    await rows(
      app.dataSource,
      `INSERT INTO logout_notices (client_id, self_registered, user_id, created_at, next_attempt_at)
       VALUES ('told', false, gen_random_uuid(), now() - interval '20 minutes', now() + interval '1 hour')`,
    );
    const wrong = await admin(['check', '--json'], undefined, environment);
    expect(wrong.status).toBe(1);
    const { checks } = JSON.parse(wrong.stdout) as {
      checks: { check: string; status: string; detail: string }[];
    };
    const statusOf = (name: string) => checks.find(({ check }) => check === name)?.status;
    expect(statusOf('configuration')).toMatch(/ok|warning/);
    // The PostgreSQL of the tests runs with fsync off. `check` warns about that as the start does.
    const ofDatabase = checks.filter(({ check }) => check === 'database');
    expect(ofDatabase.map(({ status }) => status)).toEqual(['ok', 'warning', 'warning']);
    expect(ofDatabase[1]?.detail).toMatch(/^SVC_DATABASE_URL: fsync is off: .*databases\.md/);
    expect(statusOf('migrations')).toBe('ok');
    const ofNotices = checks.filter(({ check }) => check === 'notices');
    expect(ofNotices.map(({ status }) => status)).toEqual(['ok', 'warning']);
    expect(ofNotices[0]?.detail).toMatch(
      /^back-channel-logout to applications: 1 wait since \S+Z, 0 sent and 0 failed in 30 days; back-channel-logout to clients that registered themselves: 0 wait, /,
    );
    expect(ofNotices[1]?.detail).toBe('applications have not heard of an end for 20 minutes');
    expect(statusOf('clock')).toBe('ok');
    expect(statusOf('provider demo')).toBe('ok');
    expect(statusOf('clock of demo')).toBe('ok');
    expect(statusOf('token-signing keys')).toBe('failed'); // another root secret sealed them
    // this environment has another path, at which no key file is
    expect(statusOf('SSH authority')).toBe('failed');
    expect(wrong.stdout).not.toContain('hush-hush');

    const right = await admin(['check'], undefined, {
      ...environment,
      SVC_JWT_SECRET: app.config.secrets.root,
      SVC_SSH_CA_KEY_PATH: app.config.ssh.caKeyPath,
    });
    expect(right.stdout).not.toContain('FAILED');
    expect(right.status).toBe(0);

    const broken = await adminByNode(['check'], undefined, {
      ...environment,
      SVC_IDP_DEMO_ISSUER: 'http://localhost:1',
      SVC_SESSION_HOURS: 'many',
    });
    expect(broken.status).toBe(1);
    expect(broken.stdout).toContain('SVC_SESSION_HOURS');
  });
});
