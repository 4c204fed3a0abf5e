import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/platform/database/open-database.js';
import { run } from '../support/entry-point.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

/** Inserts the user that the commands of this file are about. */
const ROWS = `
  WITH organization AS (INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'glass') RETURNING id),
       domain AS (INSERT INTO organization_domains (org_id, domain, is_primary, verified_at)
                  SELECT id, 'embedded.example', true, now() FROM organization)
  INSERT INTO users (id, org_id, email) SELECT gen_random_uuid(), id, 'ada@embedded.example' FROM organization`;

describe('node dist/admin.js on the embedded database', () => {
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await makeTemporaryDirectory();
  });
  afterAll(() => removeDirectory(dataDir));

  const admin = (...args: string[]) =>
    run('admin.js', args, { cwd: dataDir, environment: { SVC_DATA_DIR: dataDir } });

  it('makes no database where there is none', async () => {
    const missing = await admin('list-admins');
    expect(missing).toMatchObject({ status: 1, stdout: '' });
    expect(missing.stderr).toContain('SVC_DATA_DIR');
  });

  it('says that a running service uses it, and works once the service is down', async () => {
    const config = {
      url: undefined,
      dataDir,
      maxConnections: 5,
      failover: undefined,
      pooler: undefined,
      directUrl: undefined,
    };
    const service = await openDatabase(config, 'production', new Logger('test'));
    await service.dataSource.query(ROWS);
    const inUse = await admin('make-admin', 'ada@embedded.example', '--yes');
    const [before] = await service.dataSource.query<{ is_org_admin: boolean }[]>(
      'SELECT is_org_admin FROM users',
    );
    await service.close();
    expect(inUse).toMatchObject({ status: 1, stdout: '' });
    expect(inUse.stderr).toContain('running service uses the embedded database');
    expect(before).toEqual({ is_org_admin: false });

    const made = await admin('make-admin', 'ada@embedded.example', '--yes');
    expect(made).toMatchObject({ status: 0, stdout: 'ada@embedded.example is an admin now.\n' });
    const list = await admin('list-admins', '--json');
    expect(JSON.parse(list.stdout)).toMatchObject({
      admins: [{ email: 'ada@embedded.example', can_act: true }],
    });
  });
});
