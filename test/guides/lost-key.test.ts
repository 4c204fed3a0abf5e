import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TestApp } from '../support/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { guideBlock, runCommands, runToSuccess, type CommandsEnd } from '../support/guide.js';
import { orgApi } from '../support/org-api.js';
import { enrollWith, passGround, signedIn } from '../support/passes.js';
import { requires } from '../support/programs.js';
import { PublicName } from '../support/public-name.js';
import { handTo } from '../support/break-glass.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const ROOT = resolve(import.meta.dirname, '../..');

requires('curl').describe('the commands of the operator in the guides', () => {
  let database: TestDatabase;
  let name: PublicName;
  let app: TestApp;
  beforeAll(async () => {
    database = await createTestDatabase();
    name = await PublicName.open();
    app = await name.startApp({ database });
    await handTo(app.dataSource, 'production'); // the running application checked it at its start
  });
  afterAll(async () => {
    await app.close();
    await name.close();
    await database.drop();
  });

  /**
   * Runs commands of a guide in the folder of the service. They have only the URL of the database.
   */
  const operate = (commands: string): Promise<CommandsEnd> =>
    runCommands(commands, { cwd: ROOT, env: { SVC_DATABASE_URL: database.url } });

  it('the only admin gets a pass, which alone is on standard output, and enrolls a key with it', async () => {
    const { domain } = await passGround(app, 'sole.example');
    const ada = `ada@${domain}`;
    const listed = await operate(guideBlock('lost-key.md', 'list-admins'));
    expect(listed.stdout).toContain(ada);
    const given = await operate(guideBlock('lost-key.md', 'give-pass', { 'ada@example.com': ada }));
    expect(given.status, given.stderr).toBe(0);
    expect(given.stdout.trim().split('\n')).toHaveLength(1);
    const browser = await signedIn(app, ada);
    const without = await enrollWith(app, browser, app.newKey());
    expect(without.json.code).toBe('enrollment_pass_required');
    const enrolled = await enrollWith(app, browser, app.newKey(), given.stdout.trim());
    expect(enrolled.status, enrolled.text).toBe(200);
    const { events } = (await orgApi(browser, 'GET', '/audit-events')).json;
    expect(
      events.some(({ details }: { details: { by?: string } }) => details.by === 'operator'),
    ).toBe(true);
  });

  it('a second admin is made', async () => {
    const { domain, bob } = await passGround(app, 'second.example');
    expect((await orgApi(bob, 'GET', '/members')).status).toBe(403);
    const made = await operate(
      guideBlock('lost-key.md', 'make-admin', { 'grace@example.com': `bob@${domain}` }),
    );
    expect(made.status, made.stderr).toBe(0);
    expect((await orgApi(bob, 'GET', '/members')).status).toBe(200);
  });

  it('everything of the user of a stolen laptop ends, and its certificate is revoked', async () => {
    const { domain, bob } = await passGround(app, 'stolen.example');
    const { json } = await bob.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const look = () =>
      runToSuccess(guideBlock('runbooks/stolen-laptop.md', 'serial'), {
        env: { ...name.env, SERIAL: json.serial as string },
      });
    expect(JSON.parse(await look())).toMatchObject({ revoked: false });
    const revoked = await operate(
      guideBlock('runbooks/stolen-laptop.md', 'revoke', { 'ada@example.com': `bob@${domain}` }),
    );
    expect(revoked.status, revoked.stderr).toBe(0);
    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect(JSON.parse(await look())).toMatchObject({ serial: json.serial, revoked: true });
  });
});
