import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { DEPLOYMENT } from '#domain/audit/seal/checkpoint.js';
import { runScript } from '../../support/child-script.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import type { DyingSealerArgument } from '../../support/dying-sealer.js';
import { writeEvent } from '../../support/feed-reader.js';
import { count } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';
import { connectTo, TestSeal } from '../../support/seal.js';

/**
 * The sealers are killed after statement `EVERY`, `2 * EVERY` and so on, until one completes its
 * round.
 */
const EVERY = atScale({ small: 7, full: 1 });

let database: TestDatabase;
let dataSource: DataSource;
let seal: TestSeal;

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await connectTo(database);
  seal = new TestSeal(dataSource);
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

it('a sealer that is killed at any statement loses no leaf and makes no second tree', async () => {
  const { org } = await seal.organization(1);
  let events = 1;
  let deaths = 0;
  for (let isDone = false; !isDone; deaths += 1) {
    await writeEvent(dataSource, org);
    events += 1;
    const argument: DyingSealerArgument = {
      url: database.url,
      name: seal.key.name,
      key: seal.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      dieAfter: (deaths + 1) * EVERY,
    };
    const sealer = runScript<{ isRunning: boolean }>('dying-sealer.ts', argument);
    await sealer.answer;
    await sealer.gone;
    isDone = sealer.signal() === null;
    if (!isDone) expect(sealer.signal()).toBe('SIGKILL');
  }
  expect(deaths).toBeGreaterThan(2);
  await writeEvent(dataSource, org);
  await seal.seal();
  for (const tree of [org, DEPLOYMENT]) {
    const checkpoints = await seal.checkpoints(tree);
    const check = seal.check(await seal.export(tree), checkpoints);
    expect(check.findings).toEqual([]);
    expect(check.counts.unproven).toBe(0);
    if (tree === org) expect(check.counts.rows).toBe(events + 1);
  }
  expect(await count(dataSource, 'audit_trees WHERE tree = $1', [org])).toBe(1);
  expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);
});
