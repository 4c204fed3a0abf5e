import { execFile } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { READY } from '@svc/demo/people';
import { startClientGround, type ClientGround } from '../support/api-client/demo-sessions.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Pairs of a part of the client program, and a text in its place that the API does not allow. */
const FAULTS = [
  ["user.GET('/v1/keys')", "user.GET('/v1/keyz')"],
  ['query: { limit: 5 }', "query: { limit: '5' }"],
  ['query: { limit: 30 }', 'query: { limits: 30 }'],
  ['renamed.name', 'renamed.nickname'],
  ["{ name: 'Desk' }", '{ name: 7 }'],
] as const;

describe('the TypeScript client that openapi-typescript generates', () => {
  let ground: ClientGround;
  let folder: string;

  /**
   * The lines that the compiler prints about the client program and its faulty variants, in one
   * run.
   */
  let said: string[];

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    ground = await startClientGround(folder);
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await writeFile(join(folder, 'openapi.json'), ground.document);
    await program('openapi-typescript/bin/cli.js', 'openapi.json', '--output', 'api.ts');
    const walk = await readFile(join(ROOT, 'test/support/api-client/walk.txt'), 'utf8');
    await writeFile(join(folder, 'walk.ts'), walk);
    for (const [n, [right, wrong]] of FAULTS.entries()) {
      if (!walk.includes(right)) throw new Error(`the walk has no ${right}`);
      await writeFile(join(folder, `wrong-${n}.ts`), walk.replace(right, wrong));
    }
    said = await compile('walk.ts', ...FAULTS.map((_, n) => `wrong-${n}.ts`));
  });

  afterAll(async () => {
    await ground.running.demo.stop();
    await removeDirectory(folder);
  });

  /** Runs a program of an installed npm package in the folder of the client. */
  const program = (path: string, ...args: string[]) =>
    run(process.execPath, [join(ROOT, 'node_modules', path), ...args], { cwd: folder });

  /**
   * Compiles programs with the generated types and strict checks.
   *
   * @returns the lines that the compiler prints if there is a fault, else none
   */
  const compile = (...files: string[]) =>
    program(
      'typescript/bin/tsc',
      '--strict',
      '--skipLibCheck', // skips `.d.ts` files of packages alone
      '--noUncheckedIndexedAccess',
      '--exactOptionalPropertyTypes',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--types',
      'node',
      ...files,
    ).then(
      () => [],
      (error: { readonly stdout: string }) => error.stdout.split('\n'),
    );

  it('compiles, and walks the demo: keys, certificates, members, SCIM, programs, an application, the audit log', async () => {
    const ofVariants = /^(?:wrong-\d+\.ts\b| |$)/;
    expect(said.filter((line) => !ofVariants.test(line))).toEqual([]);
    const { stdout } = await run(process.execPath, ['walk.js'], {
      cwd: folder,
      env: {
        BASE_URL: ground.running.baseUrl,
        SESSION: await ground.adminSession(),
        SSH_KEY: newPublicKeyLine(),
      },
    });
    const { admin, engineer, leaver, newcomer } = READY;
    expect(JSON.parse(stdout)).toEqual({
      name: 'Desk',
      code: 'last_key',
      hasOwnSession: true,
      principals: [admin.email],
      issued: true,
      ended: 1,
      isRevoked: true,
      activity: 'ssh_certificate_revoked',
      members: [admin, engineer, leaver, newcomer, { email: 'grace@acme.example' }].map(
        ({ email }) => email,
      ),
      removed: 204,
      endedToken: 204,
      program: [['scim-tokens:rotate'], true],
      late: [401, '401'],
      application: ['Generated', 'web', 'string'],
      deleted: 204,
      events: expect.arrayContaining([
        'oauth_client_deleted',
        'oauth_client_registered',
        'scim_token_revoked',
        'scim_operation',
        'scim_token_created',
        'ssh_certificate_revoked',
      ]),
    });
  });

  it('refuses a route, a member and a code that the API does not have', () => {
    for (const [n, [, wrong]] of FAULTS.entries()) {
      const own = new RegExp(`^wrong-${n}\\.ts.*error TS`);
      expect(
        said.filter((line) => own.test(line)),
        wrong,
      ).not.toEqual([]);
    }
  });
});
