import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { recordsOf } from '../support/csv.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { addMember, idOf } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { rows } from '../support/rows.js';
import { SvcHome } from '../support/svc-command.js';

const DOMAIN = 'recall.example';
const ADMIN = `ada@${DOMAIN}`;
const FIPS = 'c1f9a0bc-1dd2-404a-b27f-8e29047a43fd';
const RECALLED = 'a25342c0-3cdc-4414-8e46-f4807fca511c';

requires('bash').describe('the guide for a FIPS audit and a recall', () => {
  let app: TestApp;
  let home: SvcHome;
  beforeAll(async () => {
    app = await startTestApp();
    const ada = await app.enrolled(ADMIN);
    await rows(app.dataSource, 'UPDATE authenticators SET aaguid = $1 WHERE user_id = $2', [
      FIPS,
      await idOf(app, ADMIN),
    ]);
    home = await SvcHome.create();
    await home.logIn(app, ada, 'openid email svc:credentials svc:admin');
    await addPerson('bob', [RECALLED]);
    await addPerson('cleo', [FIPS, RECALLED]);
    await addPerson('dora', []);
    await addPerson('eli', [RECALLED]);
    await rows(app.dataSource, 'UPDATE users SET active = false WHERE email = $1', [
      `eli@${DOMAIN}`,
    ]);
  });
  afterAll(async () => {
    await home.remove();
    await app.close();
  });

  async function addPerson(name: string, aaguids: readonly string[]): Promise<void> {
    const id = await addMember(app, ADMIN, `${name}@${DOMAIN}`);
    await rows(
      app.dataSource,
      `INSERT INTO authenticators (id, user_id, credential_id, public_key, sign_count, attestation, aaguid,
                                   user_verification, name)
       SELECT gen_random_uuid(), $1, uuid_send(gen_random_uuid()), 'pem', 0, 'packed', a, true, 'A key'
       FROM unnest($2::uuid[]) a`,
      [id, aaguids],
    );
  }

  const run = (block: string) => runToSuccess(block, { cwd: home.path, env: home.env });

  /** Returns the names of the members whose lines a file has. */
  const peopleIn = (file: string) =>
    recordsOf(readFileSync(join(home.path, file), 'utf8'))
      .map(({ email = '' }) => email.split('@')[0])
      .toSorted();

  it('answers which keys are not certified, and who has no key', async () => {
    await run(guideBlock('fips-audit-and-recall.md', 'audit'));
    expect(peopleIn('keys.csv')).toEqual(['ada', 'bob', 'cleo', 'cleo', 'eli']);
    expect(peopleIn('not-certified.csv')).toEqual(['bob', 'cleo']);
    expect(peopleIn('without-a-key.csv')).toEqual(['dora']);
  });

  it('finds the keys of a recalled model, and those who have no other', async () => {
    await run(guideBlock('fips-audit-and-recall.md', 'recall'));
    expect(peopleIn('recalled.csv')).toEqual(['bob', 'cleo', 'eli']);
    expect(peopleIn('no-other-key.csv')).toEqual(['bob', 'eli']);
    await run(guideBlock('fips-audit-and-recall.md', 'aaguid'));
    const lines = readFileSync(join(home.path, 'recalled-aaguid.csv'), 'utf8').split('\r\n');
    expect(lines.filter((line) => line !== '')).toHaveLength(3);
  });
});
