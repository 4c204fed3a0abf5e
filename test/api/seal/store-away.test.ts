import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DataSource } from 'typeorm';
import { CheckpointStore } from '#domain/audit/seal/checkpoint-store.js';
import { DEPLOYMENT } from '#domain/audit/seal/checkpoint.js';
import { listUnlogged } from '#domain/audit/seal/checkpoints.repository.js';
import { AuditSealer } from '#domain/audit/seal/sealer.js';
import { systemClock } from '#platform/clock/clock.js';
import { ObjectStoreError } from '#platform/object-store/object-store-error.js';
import type { LockedFolder } from '#platform/object-store/s3-object.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { writeEvent } from '../../support/feed-reader.js';
import { count } from '../../support/rows.js';
import { statementText } from '../../support/statement-text.js';
import { connectTo, endEpoch, TestSeal } from '../../support/seal.js';

/** A folder of an object store in memory, which can be out of reach. */
class MemoryFolder implements LockedFolder {
  isAway = false;
  /** The number of requests while the folder was out of reach. */
  refused = 0;
  /** Called before each list of names. */
  onList: () => void = () => undefined;
  readonly #objects = new Map<string, Buffer>();

  async read(name: string): Promise<Buffer> {
    this.#check();
    return this.#objects.get(name) ?? Buffer.alloc(0);
  }

  async write(name: string, body: Buffer): Promise<void> {
    this.#check();
    this.#objects.set(name, body);
  }

  async namesAfter(prefix: string, after: string): Promise<string[]> {
    this.#check();
    this.onList();
    const names = [...this.#objects.keys()].toSorted();
    return names.filter((name) => name.startsWith(prefix) && name > after);
  }

  #check(): void {
    if (!this.isAway) return;
    this.refused += 1;
    throw new ObjectStoreError('unreachable', 'the object store cannot be reached');
  }
}

describe('the sealer without its object store', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let seal: TestSeal;
  let folder: MemoryFolder;
  let sealer: AuditSealer;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataSource = await connectTo(database);
    seal = new TestSeal(dataSource);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });
  beforeEach(async () => {
    await seal.seal();
    folder = new MemoryFolder();
    sealer = new AuditSealer(dataSource, systemClock, seal.key, new CheckpointStore(folder, 7));
  });

  const sealNow = async () => {
    await seal.settled();
    await sealer.seal();
  };
  const sizes = async (org: string) => (await seal.checkpoints(org)).map(({ size }) => size);
  const faultsOf = async (tree: string) =>
    seal.check(await seal.export(tree), await seal.checkpoints(tree)).findings;

  it('signs the trees that exist, and begins those of new organizations later', async () => {
    const { org } = await seal.organization(1);
    const news = await Promise.all([1, 2, 3].map(() => seal.organization(0)));
    folder.isAway = true;
    for (const each of [org, ...news.map((one) => one.org)]) await writeEvent(dataSource, each);
    await expect(sealNow()).rejects.toThrow('the object store cannot be reached');
    expect(await sizes(org)).toEqual([1, 2]);
    expect(await sizes(news[0]?.org ?? '')).toEqual([]);
    // One tree that begins, and two checkpoints: the other trees do not ask the store again.
    expect(folder.refused).toBe(3);
    folder.isAway = false;
    await sealNow();
    for (const one of news) expect(await sizes(one.org)).toEqual([1]);
    expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);
  });

  it('begins no tree of a new epoch before the store says what was lost', async () => {
    const { org } = await seal.organization(0);
    await writeEvent(dataSource, org);
    await sealNow();
    await endEpoch(dataSource);
    await writeEvent(dataSource, org);
    folder.isAway = true;
    await expect(sealNow()).rejects.toThrow('is sealed later: the object store cannot be reached');
    folder.isAway = false;
    await sealNow();
    expect([await faultsOf(org), await faultsOf(DEPLOYMENT)]).toEqual([[], []]);
    const [, first] = await seal.export(DEPLOYMENT, { epoch: '1', index: 0 });
    expect(first).toContain(`/${DEPLOYMENT}/0\\n`);
  });

  it('begins no tree of the deployment unasked, if the process stops during a round', async () => {
    const { org } = await seal.organization(0);
    await writeEvent(dataSource, org);
    await sealNow();
    await endEpoch(dataSource);
    await writeEvent(dataSource, org);
    folder.onList = () => void sealer.stop();
    await sealNow();
    const begun = 'audit_trees t JOIN database_identity d ON d.epoch = t.epoch WHERE t.tree =';
    expect(await count(dataSource, `${begun} '${org}'`)).toBe(1);
    expect(await count(dataSource, `${begun} '${DEPLOYMENT}'`)).toBe(0);
    sealer = new AuditSealer(dataSource, systemClock, seal.key, new CheckpointStore(folder, 7));
    await sealNow();
    expect([await faultsOf(org), await faultsOf(DEPLOYMENT)]).toEqual([[], []]);
  });

  it('names a damaged tree also while the store is away', async () => {
    const [{ org }, whole] = [await seal.organization(1), await seal.organization(1)];
    for (const each of [org, whole.org]) await writeEvent(dataSource, each);
    const ofOrg = `WHERE tree = '${org}'`;
    await dataSource.query(`UPDATE audit_trees SET size = -1 ${ofOrg}`);
    folder.isAway = true;
    try {
      await expect(sealNow()).rejects.toThrow(`tree ${org} is damaged`);
    } finally {
      await dataSource.query(`UPDATE audit_trees SET size = 1 ${ofOrg}`);
    }
  });

  it('reads no checkpoint again that is in the log, while the store is away', async () => {
    await seal.organization(1);
    await dataSource.query(
      `INSERT INTO audit_checkpoints (tree, epoch, size, range, note, signed_at, logged_at)
       SELECT gen_random_uuid(), c.epoch, c.size, c.range, c.note, c.signed_at, now()
       FROM (SELECT * FROM audit_checkpoints LIMIT 1) c, generate_series(1, 2_000)`,
    );
    const runner = dataSource.createQueryRunner();
    const ask = runner.query.bind(runner);
    let plan = '';
    runner.query = async (text: string, values?: unknown[], structured?: boolean) => {
      const explain = `EXPLAIN (ANALYZE, FORMAT JSON) ${statementText(text)}`;
      plan = JSON.stringify(await ask(explain, values));
      return ask(text, values, structured as true);
    };
    try {
      await listUnlogged(runner.manager, 1_000);
    } finally {
      await runner.release();
      await dataSource.query('DELETE FROM audit_checkpoints WHERE published_at IS NULL');
    }
    expect(plan).toContain('"Actual Rows"');
    expect(plan).not.toMatch(/"Rows Removed by Filter":[1-9]/);
  });

  it('writes each checkpoint to the log once, while the store is away', async () => {
    const orgs = [await seal.organization(1), await seal.organization(1)];
    const log = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
    try {
      folder.isAway = true;
      for (const round of [2, 3]) {
        for (const { org } of orgs) await writeEvent(dataSource, org);
        await expect(sealNow()).rejects.toThrow('the object store cannot be reached');
        for (const { org } of orgs) expect((await sizes(org)).at(-1)).toBe(round);
      }
      const lines = log.mock.calls.filter(([, text]) => text === 'audit_checkpoint');
      const ofOrgs = lines.map(([line]) => line as { tree: string; size: number });
      for (const { org } of orgs) {
        const logged = ofOrgs.filter(({ tree }) => tree === org).map(({ size }) => size);
        expect(logged).toEqual([2, 3]);
      }
    } finally {
      log.mockRestore();
    }
  });

  it('publishes the checkpoints of more than 1,000 organizations in one round', async () => {
    const log = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
    try {
      await seal.organization(1);
      await dataSource.query(
        `INSERT INTO audit_checkpoints (tree, epoch, size, range, note, signed_at)
         SELECT gen_random_uuid(), c.epoch, c.size, c.range, c.note, c.signed_at
         FROM (SELECT * FROM audit_checkpoints LIMIT 1) c, generate_series(1, 1_010)`,
      );
      await sealNow();
      expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);
    } finally {
      log.mockRestore();
    }
  });
});
