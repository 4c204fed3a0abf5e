import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { accessApi, putRule, type RuleBody } from '../support/access-api.js';
import { assign, makeHostGroup } from '../support/access-hosts.js';
import { ageTouches } from '../support/access-targets.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import '../support/full-scale-only.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';
import { atScale, SCALE } from '../support/scale.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { runSshd, type Sshd, SSHD_PROGRAMS } from '../support/sshd.js';

const ROUNDS = atScale({ small: 10, full: 200 });

/** A user with a security key, and with an SSH key pair in `file`. */
interface Person {
  readonly id: string;
  readonly client: Client;
  readonly key: SoftwareKey;
  readonly file: string;
}

/** A host that has joined the service with one group of hosts, and its running sshd. */
interface Joined {
  readonly host: JoiningHost;
  readonly sshd: Sshd;
}

/**
 * Tests two real sshds. Each joined with another group of hosts, and lets its members in as root.
 * Alice is in an assigned group of SCIM, Bob is assigned, Carol is neither. Another organization
 * has a group of hosts with the same name and account.
 */
requires(...SSHD_PROGRAMS, ...HOST_PROGRAMS).describe('real sshds with groups of hosts', () => {
  let app: TestApp;
  let ours: ScimOrganization;
  let rivals: ScimOrganization;
  let orgId: string;
  let prod: Joined;
  let dev: Joined;
  let targets: { prod: string; dev: string };
  let groupId: string;
  let alice: Person;
  let bob: Person;
  let carol: Person;

  beforeAll(async () => {
    app = await startTestApp();
    ours = await foundOrganization(app, 'fleet.example');
    rivals = await foundOrganization(app, 'rival.example');
    orgId = await organizationOf('fleet.example');
    prod = await joinHost('prod');
    dev = await joinHost('dev');
    alice = await provision(ours, 'alice@fleet.example');
    bob = await provision(ours, 'bob@fleet.example');
    carol = await provision(ours, 'carol@fleet.example');
  });
  afterAll(async () => {
    await prod.sshd.stop();
    await dev.sshd.stop();
    await app.close();
  });
  beforeEach(async () => {
    await rows(app.dataSource, 'TRUNCATE rate_limits');
    await rows(app.dataSource, `DELETE FROM access_targets WHERE kind = 'host_group'`);
    await rows(app.dataSource, 'TRUNCATE access_kept_host_rules');
    await rows(app.dataSource, 'DELETE FROM groups');
    const made = await ours.scim('POST', '/Groups', {
      displayName: 'operators',
      members: [{ value: alice.id }],
    });
    groupId = String(made.json.id);
    const group = { orgId, access: 'assigned', logins: ['root'] } as const;
    targets = {
      prod: await makeHostGroup(app.dataSource, { ...group, name: 'prod' }),
      dev: await makeHostGroup(app.dataSource, { ...group, name: 'dev' }),
    };
    await assign(app.dataSource, targets.prod, { groupId });
    await assign(app.dataSource, targets.dev, { userId: bob.id });
  });

  async function organizationOf(domain: string): Promise<string> {
    const [row] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM organization_domains WHERE domain = $1',
      [domain],
    );
    return row?.org_id ?? '';
  }

  /** Joins a host with one group of hosts. The host fetches its revocation list every 2 seconds. */
  async function joinHost(group: string): Promise<Joined> {
    const host = new JoiningHost(await freePort());
    const { text } = await app.client().get('/install-host.sh');
    const { status, said } = await host.run(text, [
      ...host.paths,
      ...'--no-reload --schedule cron --interval 2 --login root'.split(' '),
      '--organization',
      orgId,
      '--group',
      group,
    ]);
    if (status !== 0) throw new Error(said);
    return { host, sshd: await runSshd(host) };
  }

  async function provision({ scim }: ScimOrganization, email: string): Promise<Person> {
    const made = await scim('POST', '/Users', { userName: email });
    if (made.status !== 201) throw new Error(made.text);
    const { client, key } = await app.enrolled(email);
    const file = join(prod.host.folder, email);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    return { id: String(made.json.id), client, key, file };
  }

  /** Requests a certificate as a user, stores it beside the key, and returns its serial number. */
  async function certify({ client, file }: Person): Promise<string> {
    const public_key = readFileSync(`${file}.pub`, 'utf8').trim();
    const { json, text } = await client.post('/v1/credentials/ssh', { public_key });
    if (json.certificate === undefined) throw new Error(text);
    writeFileSync(`${file}-cert.pub`, `${json.certificate}\n`);
    return String(json.serial);
  }

  const logIn = async ({ sshd }: Joined, { file }: Person) =>
    (await sshd.login(file, `${file}-cert.pub`)).accepted;

  const isListed = async (serial: string) => {
    const { json } = await app.client().get('/v1/credentials/ssh/krl', {
      headers: { accept: 'application/json' },
    });
    return (json.revoked_serials as string[]).includes(serial);
  };

  /** Waits until a serial is in the published list. Returns the milliseconds since `start`. */
  async function untilListed(serial: string, start: number): Promise<number> {
    await expect.poll(() => isListed(serial), { interval: 10 }).toBe(true);
    return performance.now() - start;
  }

  it('let in who reaches their group: by a group of SCIM, by name, and no other person', async () => {
    for (const person of [alice, bob, carol]) await certify(person);
    const seen: Record<string, boolean[]> = {};
    for (const [name, person] of Object.entries({ alice, bob, carol })) {
      seen[name] = [await logIn(prod, person), await logIn(dev, person)];
    }
    expect(seen).toEqual({ alice: [true, false], bob: [false, true], carol: [false, false] });
  });

  it('refuse an equal group and login of another organization', async () => {
    const rivalOrg = await organizationOf('rival.example');
    await makeHostGroup(app.dataSource, { orgId: rivalOrg, name: 'prod', logins: ['root'] });
    const mallory = await provision(rivals, 'mallory@rival.example');
    await certify(mallory);
    const shown = execFileSync('ssh-keygen', ['-L', '-f', `${mallory.file}-cert.pub`], {
      encoding: 'utf8',
    });
    expect(shown).toContain(`root@prod:${rivalOrg}`);
    expect(await logIn(prod, mallory)).toBe(false);
    await certify(alice);
    expect(await logIn(prod, alice)).toBe(true);
  });

  it('let a person in by a certificate with 256 principals, and no certificate has 257', async () => {
    const setLogins = (count: number) =>
      rows(app.dataSource, 'UPDATE access_targets SET logins = $2 WHERE id = $1', [
        targets.prod,
        ['root', ...Array.from({ length: count - 1 }, (_, n) => `u${n}`)],
      ]);
    await setLogins(255);
    await certify(alice);
    const shown = execFileSync('ssh-keygen', ['-L', '-f', `${alice.file}-cert.pub`], {
      encoding: 'utf8',
    });
    const principals = /Principals:\s*\n([\s\S]*?)\n\s*Critical/.exec(shown)?.[1]?.trim();
    expect(principals?.split(/\s+/)).toHaveLength(256);
    expect([await logIn(prod, alice), await logIn(dev, alice)]).toEqual([true, false]);
    await setLogins(256);
    const public_key = readFileSync(`${alice.file}.pub`, 'utf8').trim();
    const refused = await alice.client.post('/v1/credentials/ssh', { public_key });
    expect([refused.status, refused.json.code]).toEqual([400, 'too_many_principals']);
  });

  describe('with a touch within 15 minutes', () => {
    const demandTouch = (id: string) =>
      rows(app.dataSource, 'UPDATE access_targets SET touch_within_seconds = 900 WHERE id = $1', [
        id,
      ]);

    it('refuse the certificate when the touch is older, and take the one of a new touch', async () => {
      await demandTouch(targets.prod);
      // A new login, because the certificates of the tests before this one may be as old as the
      // limit.
      await alice.client.logIn(alice.key, { address: newAddress() });
      await ageTouches(app, 'alice@fleet.example', 890);
      await certify(alice);
      expect(await logIn(prod, alice)).toBe(true);
      await expect.poll(() => logIn(prod, alice), { interval: 1_000 }).toBe(false);
      expect((await alice.client.logIn(alice.key, { address: newAddress() })).status).toBe(200);
      await certify(alice);
      expect(await logIn(prod, alice)).toBe(true);
    });

    it('let a person with an old touch in by a group without the condition', async () => {
      await assign(app.dataSource, targets.dev, { userId: alice.id });
      await demandTouch(targets.prod);
      await ageTouches(app, 'alice@fleet.example', 901);
      await certify(alice);
      expect([await logIn(prod, alice), await logIn(dev, alice)]).toEqual([false, true]);
    });
  });

  describe('at the end of a reach', () => {
    /**
     * Changes the rule of the group of hosts by the API for admins. The admin touches the key
     * first.
     */
    const change = async (rule: RuleBody) => {
      await touchOfAdmin();
      const answer = await putRule(ours.admin.client, `/host_group/${targets.prod}`, rule);
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    };
    const deleteTarget = async () => {
      await touchOfAdmin();
      const path = `/host_group/${targets.prod}`;
      const tag = (await accessApi(ours.admin.client, 'GET', path)).headers.get('etag') ?? '';
      const answer = await accessApi(ours.admin.client, 'DELETE', path, undefined, tag);
      expect(answer.status).toBe(204);
    };
    const touchOfAdmin = () => ours.admin.client.logIn(ours.admin.key, { address: newAddress() });
    const ENDS: Record<string, () => Promise<unknown>> = {
      'SCIM PATCH of the group': () => patch('remove'),
      'SCIM DELETE of the group': () => ours.scim('DELETE', `/Groups/${groupId}`),
      'PUT of the rule without the assignment': () => change({}),
      'DELETE of the target': deleteTarget,
      'PUT of a condition': () =>
        change({ conditions: { models: 'fips-only' }, assignments: [{ group: groupId }] }),
    };
    const patch = (op: 'add' | 'remove') =>
      ours.scim('PATCH', `/Groups/${groupId}`, {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
        Operations: [
          op === 'add'
            ? { op, path: 'members', value: [{ value: alice.id }] }
            : { op, path: `members[value eq "${alice.id}"]` },
        ],
      });

    it.each(Object.entries(ENDS))(
      '%s refuses the certificate at the next pull of the host',
      async (_, end) => {
        const serial = await certify(alice);
        expect(await logIn(prod, alice)).toBe(true);
        await end();
        expect(await isListed(serial)).toBe(true); // the list has it when the change is answered
        expect(await pullOnce(prod.host)).toBe(0);
        expect(await logIn(prod, alice)).toBe(false);
        // A certificate that is issued after the change does not name the group, so sshd refuses
        // it.
        await certify(alice);
        expect(await logIn(prod, alice)).toBe(false);
      },
    );

    it(`has the serial in the list within a second of the SCIM PATCH, ${ROUNDS} times`, async () => {
      const took: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        await rows(app.dataSource, 'TRUNCATE rate_limits');
        const serial = await certify(alice);
        const start = performance.now();
        const answer = await patch('remove');
        expect(answer.status).toBeLessThan(300);
        took.push(await untilListed(serial, start));
        await patch('add');
      }
      const sorted = took.toSorted((a, b) => a - b);
      const [p50 = 0, p99 = 0] = [0.5, 0.99].map((part) => sorted[Math.ceil(part * ROUNDS) - 1]);
      console.log(
        `SCIM PATCH to the list: p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms, ${sorted.length} rounds`,
      );
      expect(p50).toBeLessThan(1_000);
      // The p99 of 10 rounds would be the slowest one, and on a busy machine single rounds are
      // slow.
      if (SCALE === 'full') expect(p99).toBeLessThan(1_000);
    }, 300_000);

    it('reaches the host within 5 seconds by the installed line of cron at an interval of 2', async () => {
      await certify(alice);
      expect(await logIn(prod, alice)).toBe(true);
      rmSync(prod.host.list);
      const running = spawnCron(prod.host);
      try {
        await expect.poll(() => existsSync(prod.host.list), { timeout: 30_000 }).toBe(true);
        const before = readFileSync(prod.host.list);
        const start = performance.now();
        await patch('remove');
        await expect
          .poll(() => readFileSync(prod.host.list).equals(before), {
            timeout: 30_000,
            interval: 20,
          })
          .toBe(false);
        const took = performance.now() - start;
        console.log(`SCIM PATCH to the list of the host: ${(took / 1000).toFixed(1)} s`);
        expect(took).toBeLessThan(5_000);
        expect(await logIn(prod, alice)).toBe(false);
      } finally {
        process.kill(-(running.pid ?? 0));
      }
    });
  });
});

/** Returns the command in the last line of the installed cron file. */
function commandOf(host: JoiningHost): string {
  const line = readFileSync(join(host.cron, 'svc-refresh-krl'), 'utf8').split('\n').at(-2) ?? '';
  return line.replace('* * * * * root ', '');
}

/** Starts the command of the installed cron file in the background, as cron does each minute. */
function spawnCron(host: JoiningHost) {
  const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  return spawn('/bin/sh', ['-c', commandOf(host)], {
    detached: true,
    stdio: 'ignore',
    env: { PATH },
  });
}

/** Runs one fetch of the loop in the installed cron file. Returns its exit status. */
function pullOnce(host: JoiningHost): Promise<number> {
  const program = commandOf(host).replace(/^.* do (.*); sleep .*$/, '$1');
  const child = spawn('/bin/sh', ['-c', program], {
    stdio: 'inherit',
    env: { PATH: process.env['PATH'] ?? '' },
  });
  return new Promise((resolve) => child.once('close', (status) => resolve(status ?? -1)));
}
