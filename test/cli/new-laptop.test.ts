import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { openProfile, startBrowser } from '../support/browser.js';
import '../support/full-scale-only.js';
import { Laptop } from '../support/laptop.js';
import { findNode, NODE_VERSIONS } from '../support/node-versions.js';
import { requires } from '../support/programs.js';
import { atScale } from '../support/scale.js';
import { startSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';
import { runProgram } from '../support/svc-command.js';
import { removeDirectory } from '../support/temporary-directory.js';

const PRINCIPAL = 'ada@acme.example';

/**
 * The major versions of Node to test. At small scale it is the oldest one alone, because
 * `test/cli/install.test.ts` starts the command on each version.
 */
const MAJORS = NODE_VERSIONS.slice(0, atScale({ small: 1, full: NODE_VERSIONS.length }));

for (const major of MAJORS) {
  const needs = ['chromium', 'curl', `node@${major}`, ...SSHD_PROGRAMS];
  requires(...needs).describe(`a new laptop with only Node ${major}`, () => {
    let app: TestApp;
    let ada: EnrolledUser;
    let sshd: Sshd;
    let browser: Browser;
    let laptop: Laptop;
    beforeAll(async () => {
      app = await startTestApp();
      ada = await app.enrolled(PRINCIPAL);
      const authority = await app.client().get('/v1/credentials/ssh/ca');
      sshd = await startSshd({ authorities: [authority.text.trim()], principals: [PRINCIPAL] });
      browser = await startBrowser();
      laptop = await Laptop.create(findNode(major) ?? '', sshd.port);
    });
    afterAll(async () => {
      await browser.close();
      await sshd.stop();
      await app.close();
      await removeDirectory(laptop.home);
    });

    /** Touches the key on the page that the command opened, as the person at the laptop would. */
    const touchKey = async () => {
      const visitor = await openProfile(browser, app.baseUrl);
      const { page } = visitor;
      await visitor.plugIn(ada.key);
      await page.goto(await laptop.openedAddress());
      await page.getByRole('button', { name: 'Use your security key' }).click();
      await page.getByText('You can close this window').waitFor();
      await visitor.leave();
    };

    it('logs in to a host by four commands', async () => {
      const version = await runProgram(findNode(major) ?? '', ['--version']);
      expect(version.stdout).toMatch(new RegExp(`^v${major}\\.`));

      const installed = await laptop.type(`curl -fsS ${app.baseUrl}/install.sh | sh`);
      expect(installed).toMatchObject({ status: 0, stderr: '' });
      expect(installed.stdout).toContain('Next: svc login');

      const login = await laptop.type('svc login', touchKey);
      expect(login.status).toBe(0);
      expect(login.stdout).toContain(`Logged in as ${PRINCIPAL}`);

      const setup = await laptop.type('svc setup --host 127.0.0.1 --yes');
      expect(setup).toMatchObject({ status: 0, stderr: '' });

      const ssh = await laptop.type(`ssh ${userInfo().username}@127.0.0.1 echo in`);
      expect(ssh).toMatchObject({ status: 0, stdout: 'in\n' });

      expect(laptop.typed).toHaveLength(4);
      console.log(`Node ${version.stdout.trim()}: ${laptop.report()}`);
    });

    it('removes what the setup wrote', async () => {
      const removed = await laptop.type('svc setup --remove --yes');
      expect(removed).toMatchObject({ status: 0, stderr: '' });
      expect(existsSync(join(laptop.home, '.ssh/config'))).toBe(false);
    });
  });
}
