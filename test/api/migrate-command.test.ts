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

  it('names the database last, without the password', async () => {
    const url = database.url.replace(/^postgres:\/\/\w+/, '$&:planted-password');
    const { status, stdout } = await migrate({
      SVC_DATABASE_URL: url,
      SVC_BASE_URL: 'http://not-checked-here.example',
    });
    expect(status).toBe(0);
    expect(stdout).toMatch(/PostgreSQL at \S+\/test_\w+ has every migration of this version/);
    expect(stdout).not.toContain('planted-password');
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
