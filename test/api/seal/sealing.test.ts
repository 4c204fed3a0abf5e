import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { DEPLOYMENT } from '#domain/audit/seal/checkpoint.js';
import { hashOfLeaves } from '#domain/audit/sealed-export/leaves.repository.js';
import { consistencyParts } from '#domain/audit/seal/merkle-tree.js';
import { openSealKey } from '#domain/audit/seal/seal-key.js';
import { AuditSealer, SEAL_PAGES } from '#domain/audit/seal/sealer.js';
import { sealGaps, sealState } from '#domain/audit/sealed-export/seal-state.repository.js';
import { systemClock } from '#platform/clock/clock.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { isExtension } from '../../../packages/svc/src/audit/tree-hash.js';
import { copyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.js';
import { startFaultProxy, type FaultProxy } from '../../support/fault-proxy.js';
import { writeEvent } from '../../support/feed-reader.js';
import { useMotoCredentials } from '../../support/kms.js';
import { startKmsStandIn, type KmsStandIn } from '../../support/kms-stand-in.js';
import { count, rows } from '../../support/rows.js';
import { connectTo, endEpoch, TestSeal } from '../../support/seal.js';
import { TestClock } from '../../support/test-clock.js';

const SEALERS = 20;

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

/**
 * Exports a tree, checks it against its own checkpoints, and expects no faults and this number of
 * events.
 */
async function expectWhole(tree: string, events: number, of = seal): Promise<void> {
  const check = of.check(await of.export(tree), await of.checkpoints(tree));
  expect(check.findings).toEqual([]);
  expect(check.counts).toEqual({ rows: events, expired: 0, unproven: 0, faults: 0 });
}

const writeMany = (org: string, events: number, columns = '', values = '') =>
  dataSource.query(
    `INSERT INTO audit_events (id, type, class, org_id${columns})
     SELECT gen_random_uuid(), 'logout', 'auth', $1${values} FROM generate_series(1, $2)`,
    [org, events],
  );

describe('the sealer', () => {
  it('covers every column of a row', async () => {
    const { org } = await seal.organization(1);
    const [, line = ''] = await seal.export(org);
    const { row } = JSON.parse(line) as { row: object };
    const columns = await rows<{ name: string }>(
      dataSource,
      `SELECT attname AS name FROM pg_attribute
       WHERE attrelid = 'audit_events'::regclass AND attnum > 0 AND NOT attisdropped`,
    );
    const names = columns.map(({ name }) => (name === 'created_at' ? 'created_at_utc' : name));
    expect(Object.keys(row).toSorted()).toEqual(names.toSorted());
  });

  it('makes one tree and one checkpoint if twenty replicas seal at once', async () => {
    const { org } = await seal.organization(0);
    await writeMany(org, 300);
    await seal.settled();
    await Promise.all(Array.from({ length: SEALERS }, () => seal.sealer().seal()));
    await expectWhole(org, 300);
    const sizes = (await seal.checkpoints(org)).map(({ size }) => size);
    expect(sizes).toEqual([300]);
    expect(await count(dataSource, 'audit_trees WHERE tree = $1', [org])).toBe(1);
    expect(
      seal.check(await seal.export(DEPLOYMENT), await seal.checkpoints(DEPLOYMENT)).findings,
    ).toEqual([]);
  });

  it('looks through the organizations in pages', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => seal.organization(0)));
    const { organizations } = SEAL_PAGES;
    for (const each of [1, 2, 1_000]) {
      SEAL_PAGES.organizations = each;
      try {
        for (const { org } of all) await writeEvent(dataSource, org);
        await seal.seal();
      } finally {
        SEAL_PAGES.organizations = organizations;
      }
    }
    for (const { org } of all) await expectWhole(org, 3);
  });

  it('looks through fewer organizations at a time if the database cancels the statement', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => seal.organization(0)));
    for (const { org } of all) await writeEvent(dataSource, org);
    await seal.settled();
    const pages = 'audited_organizations_after';
    await dataSource.query(`ALTER FUNCTION ${pages} RENAME TO ${pages}_fast`);
    await dataSource.query(
      `CREATE FUNCTION ${pages}(after uuid, most integer) RETURNS SETOF uuid LANGUAGE plpgsql AS $$
       BEGIN
         IF most > 3 THEN RAISE query_canceled; END IF;
         RETURN QUERY SELECT ${pages}_fast(after, most);
       END $$`,
    );
    try {
      await seal.sealer().seal();
    } finally {
      await dataSource.query(`DROP FUNCTION ${pages}`);
      await dataSource.query(`ALTER FUNCTION ${pages}_fast RENAME TO ${pages}`);
    }
    for (const { org } of all) await expectWhole(org, 1);
  });

  it('begins one round a minute on one replica, also after the clock was set back', async () => {
    const { org } = await seal.organization(1);
    const round = async (at: string) => {
      await writeEvent(dataSource, org);
      await seal.settled();
      await dataSource.query(`UPDATE audit_seal SET round_at = ${at}`);
      await Promise.all(Array.from({ length: SEALERS }, () => seal.sealer().run()));
      return (await seal.checkpoints(org)).length;
    };
    expect(await round("clock_timestamp() - interval '20 s'")).toBe(1);
    expect(await round("clock_timestamp() - interval '51 s'")).toBe(2);
    expect(await round("clock_timestamp() + interval '1 year'")).toBe(3);
    await expectWhole(org, 4);
    const { age = Number.NaN, unpublished } = await sealState(dataSource.manager);
    expect([age < 30_000, unpublished]).toEqual([true, 0]);
  });

  it('never states an earlier time than before, and orders nothing by time', async () => {
    const { org } = await seal.organization(0);
    const year = 366 * 86_400_000;
    for (const at of [year, 3 * year, 2 * year, year]) {
      await writeEvent(dataSource, org);
      await seal.settled();
      await seal.sealer(new TestClock(at)).seal();
    }
    const times = (await seal.checkpoints(org)).map(({ time }) => time.slice(0, 4));
    expect(times).toEqual(['1971', '1973', '1973', '1973']);
    await expectWhole(org, 4);
  });

  it('proves the rest after retention has removed rows, and names other removals', async () => {
    const { org, ids } = await seal.organization(2);
    await writeMany(org, 400, ', created_at', ", now() - interval '100 days'");
    await writeMany(org, 3);
    await seal.seal();
    const witness = await seal.checkpoints(org);
    await dataSource.query(
      "DELETE FROM audit_events WHERE created_at < now() - interval '90 days'",
    );
    const check = seal.check(await seal.export(org), witness);
    expect(check.findings).toEqual([]);
    expect(check.counts).toEqual({ rows: 5, expired: 400, unproven: 0, faults: 0 });
    await dataSource.query('DELETE FROM audit_events WHERE id = $1', [ids[0]]);
    expect(seal.check(await seal.export(org), witness).findings).toMatchObject([
      { fault: 'removed', id: ids[0], index: 0 },
    ]);
  });

  it('expects that the clean-up goes on while the export is read', async () => {
    const { org } = await seal.organization(1);
    const age = "interval '90 days' -";
    await writeMany(org, 2, ', created_at', `, now() - (${age} interval '10 minutes')`);
    await writeMany(org, 1, ', created_at', `, now() - (${age} interval '2 hours')`);
    await seal.seal();
    const witness = await seal.checkpoints(org);
    const remove = (later: string) =>
      dataSource.query(
        `DELETE FROM audit_events WHERE org_id = $1 AND created_at < now() - (${age} $2::interval)`,
        [org, later],
      );
    await remove('20 minutes');
    const check = seal.check(await seal.export(org), witness);
    expect(check.findings).toEqual([]);
    expect(check.counts).toEqual({ rows: 2, expired: 2, unproven: 0, faults: 0 });
    await remove('3 hours');
    expect(seal.check(await seal.export(org), witness).findings).toMatchObject([
      { fault: 'removed' },
    ]);
  });

  it('proves that each checkpoint extends those before, over many tiles', async () => {
    const { org } = await seal.organization(0);
    for (const events of [1, 254, 1, 1, 300, 700, 1]) {
      await writeMany(org, events);
      await seal.seal();
    }
    const checkpoints = await seal.checkpoints(org);
    expect(checkpoints).toHaveLength(7);
    for (const [n, first] of checkpoints.entries()) {
      for (const second of checkpoints.slice(n)) {
        const proof: Buffer[] = [];
        for (const part of consistencyParts(first.size, second.size)) {
          proof.push(await hashOfLeaves(dataSource.manager, org, first.epoch, part));
        }
        expect(isExtension(first, second, proof)).toBe(true);
      }
    }
    await expectWhole(org, 1_258);
  });

  it('has the rows without an organization and the checkpoints of organizations in one tree', async () => {
    await dataSource.query(
      "INSERT INTO audit_events (id, type, class) VALUES (gen_random_uuid(), 'logout', 'auth')",
    );
    const { org } = await seal.organization(2);
    const lines = await seal.export(DEPLOYMENT);
    const leaves = lines.map((line) => JSON.parse(line) as { checkpoint?: string; row?: object });
    expect(leaves.some(({ row }) => row !== undefined)).toBe(true);
    const named = leaves.filter(({ checkpoint }) => checkpoint?.includes(org));
    expect(named.map(({ checkpoint }) => checkpoint)).toEqual(
      (await seal.checkpoints(org)).map(({ note }) => note),
    );
    const check = seal.check(lines, await seal.checkpoints(DEPLOYMENT));
    expect(check.findings).toEqual([]);
    await dataSource.query(
      "UPDATE audit_checkpoints SET note = replace(note, 'time 2', 'time 3') WHERE tree = $1 AND size = 1",
      [org],
    );
    const after = seal.check(await seal.export(DEPLOYMENT), await seal.checkpoints(DEPLOYMENT));
    expect(after.findings).toMatchObject([{ fault: 'changed', id: org }]);
  });

  it('seals the other organizations if the tree of one is damaged', async () => {
    const { org: signed } = await seal.organization(2);
    const { org: sized } = await seal.organization(2);
    const { org: whole } = await seal.organization(1);
    await dataSource.query('UPDATE audit_trees SET signed_size = 1 WHERE tree = $1', [signed]);
    await dataSource.query('UPDATE audit_trees SET size = 1 WHERE tree = $1', [sized]);
    for (const org of [sized, whole]) await writeEvent(dataSource, org);
    await expect(seal.seal()).rejects.toThrow(/^tree [0-9a-f-]{36} is damaged: duplicate key/);
    await expectWhole(whole, 2);
    expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);
    await writeEvent(dataSource, signed);
    await expect(seal.seal()).rejects.toThrow(`tree ${sized} is damaged`);
    await expectWhole(signed, 3);
    await dataSource.query('UPDATE audit_trees SET size = signed_size WHERE tree = $1', [sized]);
    await seal.seal();
    await expectWhole(sized, 3);
  });

  it('signs the trees of organizations if the tree of the deployment is damaged', async () => {
    const { org } = await seal.organization(2);
    const { org: broken } = await seal.organization(2);
    const findings = async () =>
      seal.check(await seal.export(DEPLOYMENT), await seal.checkpoints(DEPLOYMENT)).findings;
    const before = await findings();
    const [tree] = await rows<{ size: string }>(
      dataSource,
      'SELECT size FROM audit_trees WHERE tree = $1',
      [DEPLOYMENT],
    );
    const resize = (size: string) =>
      dataSource.query('UPDATE audit_trees SET size = $1 WHERE tree = $2', [size, DEPLOYMENT]);
    await resize('1');
    await dataSource.query('UPDATE audit_trees SET size = 1 WHERE tree = $1', [broken]);
    for (const each of [org, broken]) await writeEvent(dataSource, each);
    await expect(seal.seal()).rejects.toThrow(/^tree [0-9a-f-]{36} is damaged: duplicate key/);
    await expectWhole(org, 3);
    expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);
    await dataSource.query('UPDATE audit_trees SET size = signed_size WHERE tree = $1', [broken]);
    await expect(seal.seal()).rejects.toThrow(`tree ${DEPLOYMENT} is damaged: duplicate key`);
    await expectWhole(broken, 3);
    await resize(tree?.size ?? '');
    await writeEvent(dataSource, org);
    await seal.seal();
    await expectWhole(org, 4);
    expect(await findings()).toEqual(before);
    const leaves = (await seal.export(DEPLOYMENT)).filter((line) => line.includes(org));
    expect(leaves.at(-1)).toContain('\\n4\\n');
  });

  it('gives the repaired tree of the deployment the checkpoints that it lacks, each once', async () => {
    const { org } = await seal.organization(1);
    const findings = async () =>
      seal.check(await seal.export(DEPLOYMENT), await seal.checkpoints(DEPLOYMENT)).findings;
    const before = await findings();
    const leaves = async () => (await seal.export(DEPLOYMENT)).filter((line) => line.includes(org));
    expect(await leaves()).toHaveLength(1);
    await writeEvent(dataSource, org);
    await expect(sealWith('RETURN NULL', DEPLOYMENT, 'size')).rejects.toThrow(
      `tree ${DEPLOYMENT} is damaged`,
    );
    expect(await leaves()).toHaveLength(1);
    // The organization has no further event.
    await Promise.all(Array.from({ length: 5 }, () => seal.sealer().seal()));
    const [, added, ...more] = await leaves();
    expect(added).toContain('\\n2\\n');
    await seal.seal();
    expect([more, await leaves()]).toEqual([[], [expect.anything(), added]]);
    expect(await findings()).toEqual(before);
  });

  it.each(['9007199254740993', '9223372036854775807', '-1'])(
    'signs the other trees beside a tree of the impossible size %s',
    async (size) => {
      const { org } = await seal.organization(1);
      const { org: broken } = await seal.organization(1);
      for (const tree of [DEPLOYMENT, broken]) {
        const [{ size: before } = { size: '' }] = await rows<{ size: string }>(
          dataSource,
          'SELECT size FROM audit_trees WHERE tree = $1',
          [tree],
        );
        const resize = (to: string) =>
          dataSource.query('UPDATE audit_trees SET size = $1 WHERE tree = $2', [to, tree]);
        await resize(size);
        for (const each of [org, broken]) await writeEvent(dataSource, each);
        await expect(seal.seal()).rejects.toThrow(`tree ${tree} is damaged: its size`);
        expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);
        await resize(before);
      }
      await seal.seal();
      await expectWhole(org, 3);
      await expectWhole(broken, 3);
    },
  );

  /** Seals while a trigger runs `body`, PL/pgSQL, at each change of a column of the tree's row. */
  const sealWith = async (body: string, tree: string, column: string) => {
    await dataSource.query(
      `CREATE FUNCTION of_test() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body}; END $$;
       CREATE TRIGGER of_test BEFORE UPDATE ON audit_trees FOR EACH ROW
       WHEN (NEW.tree = '${tree}' AND NEW.${column} <> OLD.${column}) EXECUTE FUNCTION of_test()`,
    );
    try {
      await seal.seal();
    } finally {
      await dataSource.query('DROP FUNCTION of_test CASCADE');
    }
  };

  it('signs the other trees if the tree of the deployment cannot be written', async () => {
    const { org } = await seal.organization(1);
    await writeEvent(dataSource, org);
    await expect(sealWith('RETURN NULL', DEPLOYMENT, 'size')).rejects.toThrow(
      `tree ${DEPLOYMENT} is damaged`,
    );
    await expectWhole(org, 2);
  });

  it.each(['size', 'signed_size'])(
    'seals the other trees if one loses every race for its %s, and this one later',
    async (column) => {
      const { org } = await seal.organization(1);
      const { org: late } = await seal.organization(1);
      for (const each of [org, late]) await writeEvent(dataSource, each);
      const lostRace = "RAISE EXCEPTION 'a lost race' USING ERRCODE = '40001'";
      await expect(sealWith(lostRace, late, column)).rejects.toThrow(
        `tree ${late} is sealed later: a lost race`,
      );
      expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);
      await expectWhole(org, 2);
      await seal.seal();
      await expectWhole(late, 2);
      const leaves = (await seal.export(DEPLOYMENT)).filter((line) => line.includes(late));
      expect(leaves).toHaveLength(2);
    },
  );
});

describe('a key in KMS', () => {
  const restore = useMotoCredentials();
  let kms: KmsStandIn;
  let proxy: FaultProxy;
  beforeAll(async () => {
    kms = await startKmsStandIn();
    proxy = await startFaultProxy(kms.endpoint);
  });
  afterAll(async () => {
    await proxy.close();
    await kms.close();
    restore();
  });

  it('signs checkpoints, and what waited while KMS was away is signed later', async () => {
    const kmsKeyId = kms.create();
    const keys = [
      { variable: 'SVC_AUDIT_SEAL_KMS_KEY_ID', keyId: kmsKeyId, use: 'Ed25519' as const },
    ];
    const kmsKeys = await KmsKeys.open({
      kms: { keys, endpoint: proxy.endpoint },
      upstream: { extraCaCerts: [] },
    });
    const http = { baseUrl: 'https://login.example.org' };
    const config = {
      auditSeal: { kmsKeyId, key: undefined, bucket: undefined, retentionDays: 400 },
      http,
      secrets: { root: 'a'.repeat(43), previousRoot: undefined },
    };
    const key = await openSealKey(config, dataSource.manager, kmsKeys);
    const own = new TestSeal(dataSource, undefined, key);
    expect(own.verifier).toMatch(/^login\.example\.org\/audit\+/);
    const { org } = await own.organization(2);
    proxy.fault = { status: 500, body: '{}' };
    await writeEvent(dataSource, org);
    await expect(own.seal()).rejects.toThrow('kms_unavailable');
    proxy.fault = 'none';
    await own.seal();
    await expectWhole(org, 3, own);
    expect((await own.checkpoints(org)).map(({ size }) => size)).toEqual([1, 2, 3]);
    expect(await count(dataSource, 'audit_seal_keys WHERE verifier = $1', [own.verifier])).toBe(1);
  });
});

describe('a new epoch', () => {
  it('begins a new tree, whose first leaf names the last checkpoint of the tree before', async () => {
    const { org } = await seal.organization(3);
    const [last] = (await seal.checkpoints(org)).slice(-1);
    await writeEvent(dataSource, org);
    await endEpoch(dataSource);
    await writeEvent(dataSource, org);
    await seal.seal();
    const lines = await seal.export(org);
    const first = lines.findIndex((line) => line.includes('"checkpoint":'));
    expect(JSON.parse(lines[first] ?? '')).toMatchObject({ index: 0, checkpoint: last?.note });
    expect(await count(dataSource, 'audit_trees WHERE tree = $1', [org])).toBe(2);
    await expectWhole(org, 5);
  });

  it('seals the rows again that have no checkpoint yet', async () => {
    const { org } = await seal.organization(2);
    await writeMany(org, 2);
    await seal.settled();
    const sign = () => Promise.reject(new Error('the key service is away'));
    const broken = { ...seal.key, signer: { ...seal.key.signer, sign } };
    await expect(new AuditSealer(dataSource, systemClock, broken).seal()).rejects.toThrow('away');
    expect(await count(dataSource, 'audit_leaves WHERE tree = $1', [org])).toBe(3);
    await endEpoch(dataSource);
    await seal.seal();
    await expectWhole(org, 4);
  });

  it('of a copy that lost rows names the old checkpoint, and the lost rows are noticed', async () => {
    const { org } = await seal.organization(3);
    await dataSource.destroy();
    const copy = await copyDatabase(database);
    dataSource = await connectTo(database);
    seal = new TestSeal(dataSource, seal.privateKey);
    await writeMany(org, 2);
    await seal.seal();
    const witness = await seal.checkpoints(org);
    expect(witness.at(-1)?.size).toBe(5);

    const restored = await connectTo(copy);
    try {
      const own = new TestSeal(restored, seal.privateKey);
      await endEpoch(restored);
      await writeEvent(restored, org);
      await own.seal();
      const gap = { tree: org, epoch: witness[0]?.epoch, published: 5, kept: 3 };
      const asText = witness.map(({ note }) => note).join('\n');
      const asLog = witness
        .map(({ note }) => JSON.stringify({ note: note.split('\n') }))
        .join('\n');
      for (const text of [asText, asLog, JSON.stringify({ checkpoints: witness })]) {
        expect(await sealGaps(restored.manager, text)).toEqual([{ ...gap, isContradicted: false }]);
      }
      expect(await sealGaps(dataSource.manager, asText)).toEqual([]);
      const checkpoints = await own.checkpoints(org);
      expect(new Set(checkpoints.map(({ epoch }) => epoch)).size).toBe(2);
      expect(checkpoints.filter(({ epoch }) => epoch === witness[0]?.epoch)).toHaveLength(3);
      await expectWhole(org, 4, own);
      const { findings } = own.check(await own.export(org), [...checkpoints, ...witness]);
      expect(findings).toMatchObject([{ fault: 'missing', index: 3, epoch: witness[0]?.epoch }]);
    } finally {
      await restored.destroy();
      await copy.drop();
    }
  });
});
