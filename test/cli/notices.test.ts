import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { addKey } from '../support/keys.js';
import { SvcHome } from '../support/svc-command.js';

describe('a notice about the account', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  let home: SvcHome;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@svc-notices.example');
    home = await SvcHome.create();
    await home.logIn(app, ada);
  });
  afterAll(async () => {
    await home.remove();
    await app.close();
  });

  it('is one line of the next command that a person runs, once, and of no other command', async () => {
    const line = `svc: Notice: a security key was added to your account. Read it at ${app.baseUrl}/account\n`;
    expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: '' });
    await addKey(app, ada.client, app.newKey(), 'Spare');
    // Another program reads the output of these commands.
    expect((await home.run(['keys', '--json'])).stderr).toBe('');
    const git = await home.run(['git', 'credential', 'get'], {
      input: 'protocol=https\nhost=github.com\npath=acme/shop.git\n\n',
    });
    expect(git.stderr).not.toContain('Notice');
    expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: line });
    expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: '' });
    await addKey(app, ada.client, app.newKey(), 'Another');
    expect((await home.run(['setup', '--dry-run'])).stderr).toContain(line);
    expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: '' });
  });
});
