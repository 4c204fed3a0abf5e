import { execFile } from 'node:child_process';
import { copyFile, readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

describe('the TypeScript client that openapi-typescript generates', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let folder: string;

  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'acme.example');
    folder = await makeTemporaryDirectory();
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  });

  afterAll(async () => {
    await app.close();
    await removeDirectory(folder);
  });

  /** Runs a program of the packages in the folder of the client. */
  const program = (path: string, ...args: string[]) =>
    run(process.execPath, [join(ROOT, 'node_modules', path), ...args], { cwd: folder });

  /** Compiles the program and its types, strictly. @returns what the compiler says */
  const compile = (...more: string[]) =>
    program(
      'typescript/bin/tsc',
      '--strict',
      '--noUncheckedIndexedAccess',
      '--exactOptionalPropertyTypes',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--types',
      'node',
      ...more,
      'walk.ts',
    ).then(
      () => '',
      (error: { readonly stdout: string }) => error.stdout,
    );

  it('compiles, and walks keys, a certificate, members and SCIM', async () => {
    const { text } = await app.client().get('/openapi.json');
    await writeFile(join(folder, 'openapi.json'), text);
    await program('openapi-typescript/bin/cli.js', 'openapi.json', '--output', 'api.d.ts');
    await copyFile(join(ROOT, 'test/support/api-client/walk.txt'), join(folder, 'walk.ts'));
    expect(await compile('--noEmit')).toBe('');
    expect(await compile()).toBe('');
    const { stdout } = await run(process.execPath, ['walk.js'], {
      cwd: folder,
      env: {
        BASE_URL: app.baseUrl,
        SESSION: organization.admin.client.cookie('svc_session'),
        SCIM_TOKEN: organization.token,
        SSH_KEY: newPublicKeyLine(),
      },
    });
    expect(JSON.parse(stdout)).toEqual({
      name: 'Desk',
      principals: ['admin@acme.example'],
      members: ['admin@acme.example', 'grace@acme.example'],
      removed: 204,
      code: 'last_key',
    });
  });

  it('refuses a route, a member and a code that the API does not have', async () => {
    const walk = await readFile(join(folder, 'walk.ts'), 'utf8');
    for (const [right, wrong] of [
      ["user.GET('/v1/keys')", "user.GET('/v1/keyz')"],
      ['renamed.name', 'renamed.nickname'],
      ["{ name: 'Desk' }", '{ name: 7 }'],
    ] as const) {
      expect(walk).toContain(right);
      await writeFile(join(folder, 'walk.ts'), walk.replace(right, wrong));
      expect(await compile('--noEmit'), wrong).toContain('error TS');
    }
  });
});
