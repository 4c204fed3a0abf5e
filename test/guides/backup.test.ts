import '../support/full-scale-only.js';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FAILOVER_LIMITS } from '../../src/domain/admin/database-failover/failover-limits.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { renameProvider } from '../support/break-glass.js';
import type { Answer } from '../support/client.js';
import { startDebianPostgres, type DebianPostgres } from '../support/debian-postgres.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { requires } from '../support/programs.js';
import { PublicName } from '../support/public-name.js';
import { atScale } from '../support/scale.js';
import {
  createStream,
  newProgram,
  poll,
  programOf,
  signalsOf,
  type StreamProgram,
} from '../support/signal-streams.js';
import { signInTo } from '../support/signed-in-application.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ADA = 'ada@backup.example';

/**
 * The time in milliseconds without a heartbeat after which a process counts as ended. At full scale
 * it is that of production.
 */
const ENDED_AFTER = atScale({ small: 1_500, full: FAILOVER_LIMITS.recent });

requires('postgresql', 'psql', 'pg_dump', 'curl', 'ssh-keygen').describe(
  'backup, drill and restore, by the guide',
  () => {
    const parts = new AsyncDisposableStack();
    let postgres: DebianPostgres;
    let folder: string;
    let name: PublicName;
    let app: TestApp;
    let ada: EnrolledUser;
    let env: Record<string, string>;
    beforeAll(async () => {
      folder = await makeTemporaryDirectory();
      parts.defer(() => removeDirectory(folder));
      for (const part of ['lib', 'etc', 'safe']) mkdirSync(join(folder, part));
      name = await PublicName.open();
      parts.defer(() => name.close());
      writeFileSync(join(folder, 'etc/svc.env'), 'SVC_JWT_SECRET=…\n');
      postgres = await startDebianPostgres();
      parts.defer(() => postgres.stop());
      const admin = postgres.url('postgres', 'postgres');
      await runToSuccess(
        `psql --quiet ${admin} -c 'CREATE ROLE svc LOGIN' -c 'CREATE DATABASE svc OWNER svc'`,
      );
      app = await started();
      parts.defer(() => app.close());
      ada = await app.enrolled(ADA);
      // The test replaces the databases and the backup folder of the guide by its own.
      const variables = guideBlock('backup.md', 'variables', {
        'postgres://svc@db.example.com/svc': postgres.url('svc', 'svc'),
        'postgres://postgres@db.example.com/postgres': admin,
        '/var/backups/svc': join(folder, 'backups'),
      });
      env = Object.fromEntries(
        [...variables.matchAll(/^export (\w+)=(.*)$/gm)].map(([, variable = '', value = '']) => [
          variable,
          value,
        ]),
      );
    });
    afterAll(() => parts.disposeAsync());

    /**
     * Starts the service on the database of the guide, with the guide's file for the SSH authority
     * key. On a restored database it first waits until the earlier processes count as ended.
     */
    const started = () =>
      name.startApp({
        failoverLimits: { recent: ENDED_AFTER, patience: ENDED_AFTER },
        database: { url: postgres.url('svc', 'svc') },
        environment: { SVC_SSH_CA_KEY_PATH: join(folder, 'lib/ssh_ca_key') },
      });

    const run = (commands: string) => runToSuccess(commands, { env: { ...env, ...name.env } });
    // The test replaces folders of the system by its own, because it must not write into them.
    const places = () => ({ '/var/lib/svc': join(folder, 'lib') });
    const safe = () => ({
      ...places(),
      '/etc/svc': join(folder, 'etc'),
      '/media/safe/svc': join(folder, 'safe/svc'),
    });
    const certificate = (user: EnrolledUser): Promise<Answer> =>
      user.client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    /** Ends a second session of Ada. The service reports it to the stream of the application. */
    const endSession = async ({ application }: StreamProgram) => {
      const browser = app.client();
      await browser.logIn(ada.key);
      await signInTo(app, browser, application);
      expect((await browser.send('POST', '/logout')).status).toBeLessThan(400);
    };
    const fingerprintIn = (text: string) => /SHA256:[\w+/]{43}/.exec(text)?.[0];

    it('a backup, the drill, the loss of everything and the restore lose no user, key or serial', async () => {
      const before = await certificate(ada);
      expect(before.status).toBe(200);
      const program = await newProgram(app, ada.client);
      const streamId = await createStream(program);
      await endSession(program);
      await run(guideBlock('backup.md', 'backup'));
      const [sent] = Object.keys((await poll(program, streamId)).sets);
      expect(await poll(program, streamId, { ack: [sent] })).toMatchObject({ sets: {} });
      await run(guideBlock('backup.md', 'secrets', safe()));
      const paper = fingerprintIn(await run(guideBlock('backup.md', 'fingerprint')));
      expect(paper).toBeDefined();

      const after = await certificate(ada);
      const drill = await run(guideBlock('backup.md', 'drill'));
      expect(drill).toContain('users 1 1\n');
      expect(drill).toContain('authenticators 1 1\n');
      expect(drill).toContain('ssh_certificates 2 1\n'); // one of two is from after the backup
      const compared = await run(
        guideBlock('backup.md', 'compare', { '/media/safe/svc': join(folder, 'safe/svc') }),
      );
      expect(compared.trim().split('\n')).toEqual([paper, paper]);

      await app.close();
      await run(`psql --quiet "$ADMIN_URL" -c 'DROP DATABASE svc'`);
      for (const lost of ['lib/ssh_ca_key', 'etc/svc.env']) rmSync(join(folder, lost));
      await run(guideBlock('backup.md', 'restore', safe()));
      await run(guideBlock('backup.md', 'list'));
      app = await started();
      const check = await run(guideBlock('backup.md', 'check'));
      expect(check).toContain('"ready"');
      expect(fingerprintIn(check)).toBe(paper);

      // The restored service reports that events of the stream may be lost. It sends the event
      // again that the receiver acknowledged after the backup, with the same `jti`.
      const told = await signalsOf(app, streamId);
      expect(told.map(({ type }) => type)).toEqual(['session-revoked', 'stream-updated']);
      const again = await poll(await programOf(app, program.application), streamId);
      expect(Object.keys(again.sets)).toEqual([sent, expect.any(String)]);

      // The session from before the backup has ended. The next login needs the identity provider
      // first, and then the key.
      const client = app.client();
      client.setCookie('svc_session', ada.client.cookie('svc_session') ?? '');
      expect((await certificate({ ...ada, client })).status).toBe(401);
      expect((await app.client().logIn(ada.key)).status).toBe(403);
      await renameProvider(app);
      const browser = app.client();
      await browser.signIn(ADA);
      expect((await browser.logIn(ada.key)).status).toBe(200);
      const renewed = await certificate({ ...ada, client: browser });
      expect(renewed.status).toBe(200);
      const serials = [before, after, renewed].map(({ json }) => BigInt(json.serial));
      expect(serials.toSorted((one, other) => Number(one - other))).toEqual(serials);
      expect(new Set(serials).size).toBe(3);
      expect((await app.client().logIn(ada.key)).status).toBe(200);
    });

    it('the list of revoked certificates has a higher number after the restore', async () => {
      const number = async () =>
        Number(
          await run(
            `psql -At "$SVC_DATABASE_URL" -c 'SELECT coalesce(max(number), 0) FROM ssh_revocation_list'`,
          ),
        );
      await app.client().get('/v1/credentials/ssh/krl');
      const before = await number();
      await run(guideBlock('backup.md', 'list'));
      await app.client().get('/v1/credentials/ssh/krl');
      expect(await number()).toBeGreaterThan(before);
    });

    it('the command that tells streams of signals tells each of them', async () => {
      const browser = app.client();
      await browser.logIn(ada.key);
      const streamId = await createStream(await newProgram(app, browser));
      await run(guideBlock('backup.md', 'signals'));
      const told = await signalsOf(app, streamId);
      expect(told.map(({ type, body }) => [type, body['reason']])).toEqual([
        ['stream-updated', 'The transmitter was restored from a backup.'],
      ]);
    });

    it('the command that ends all sessions does so, and the key still logs in', async () => {
      const browser = app.client();
      await browser.logIn(ada.key);
      expect((await browser.get('/v1/keys')).status).toBe(200);
      await run(guideBlock('backup.md', 'sessions'));
      expect((await browser.get('/v1/keys')).status).toBe(401);
      expect((await app.client().logIn(ada.key)).status).toBe(200);
    });
  },
);

requires('tar').describe('the embedded database, by the guide', () => {
  it('a copied directory starts with its users and its authority', async () => {
    const folder = await makeTemporaryDirectory();
    const data = join(folder, 'lib');
    const environment = { SVC_DATABASE_URL: '', SVC_DATA_DIR: data };
    const places = { '/var/lib/svc': data, '/var/backups': folder };
    const authority = async (app: TestApp) =>
      (await app.client().get('/v1/credentials/ssh/ca')).text;
    try {
      const first = await startTestApp({ environment });
      const { key } = await first.enrolled(ADA);
      const before = await authority(first);
      await first.close();
      await runToSuccess(guideBlock('backup.md', 'embedded', places));
      rmSync(data, { recursive: true });
      await runToSuccess(guideBlock('backup.md', 'embedded-restore', places));
      const second = await startTestApp({ environment });
      expect(await authority(second)).toBe(before);
      expect((await second.client().logIn(key)).status).toBe(200);
      await second.close();
    } finally {
      await removeDirectory(folder);
    }
  });
});
