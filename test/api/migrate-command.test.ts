import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { copyCluster } from '../support/cluster-template.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { run } from '../support/entry-point.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

describe('node dist/migrate.js', () => {
  let folder: string;
  let database: TestDatabase;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    database = await createTestDatabase();
  });
  afterAll(async () => {
    await database.drop();
    await removeDirectory(folder);
  });
  const migrate = (environment: Record<string, string>) =>
    run('migrate.js', [], { cwd: folder, environment });

  it('refuses a mistyped name of a variable, and makes no database', async () => {
    const ended = await migrate({ SVC_DATABASE_ULR: database.url });
    expect(ended).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'SVC_DATABASE_ULR: is not a variable of this service; did you mean SVC_DATABASE_URL?\n',
    });
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  it('refuses a pooler without the URL of PostgreSQL itself', async () => {
    const ended = await migrate({
      SVC_DATABASE_URL: database.url,
      SVC_DATABASE_POOLER: 'transaction',
    });
    expect(ended).toMatchObject({
      status: 1,
      stderr: 'SVC_DATABASE_DIRECT_URL: is required where SVC_DATABASE_POOLER is set\n',
    });
  });

  it('logs as the service does, and names the database last, without the password', async () => {
    const url = database.url.replace(/^postgres:\/\/\w+/, '$&:planted-password');
    const ended = await migrate({
      SVC_DATABASE_URL: url,
      SVC_LOG_FORMAT: 'json',
      SVC_BASE_URL: 'http://not-checked-here.example',
      SVC_UNKNOWN_SETTING: 'x',
    });
    expect(ended).toMatchObject({ status: 0, stderr: '' });
    const lines = ended.stdout
      .trim()
      .split('\n')
      .map((line): Record<string, string> => JSON.parse(line));
    expect(lines.find(({ level }) => level === 'warn')?.['msg']).toMatch(/^SVC_UNKNOWN_SETTING: /);
    expect(lines.at(-1)).toMatchObject({ level: 'info', context: 'migrate' });
    const [, name = ''] = /\/(test_\w+)/.exec(database.url) ?? [];
    expect(lines.at(-1)?.['msg']).toMatch(
      new RegExp(`^PostgreSQL at \\S+/${name} has every migration of this version$`),
    );
    expect(ended.stdout).not.toContain('planted-password');
  });

  it('writes no colors into a pipe, and what RUST_LOG asks for', async () => {
    const environment = { SVC_DATABASE_URL: database.url };
    const { stdout } = await migrate(environment);
    expect(stdout).toContain('has every migration of this version');
    expect(stdout).not.toContain('\u001b');
    expect(await migrate({ ...environment, RUST_LOG: 'error' })).toMatchObject({
      status: 0,
      stdout: '',
    });
  });

  it('names the folder of an embedded database', async () => {
    const dataDir = join(folder, 'embedded');
    await mkdir(dataDir, { mode: 0o711 });
    await copyCluster(dataDir);
    const ended = await migrate({ SVC_DATA_DIR: 'embedded' });
    expect(ended.status).toBe(0);
    expect(ended.stdout).toContain(`embedded PostgreSQL in ${dataDir} has every migration`);
  });
});
