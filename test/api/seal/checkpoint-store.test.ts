import {
  CreateBucketCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { CheckpointStore } from '#domain/audit/seal/checkpoint-store.js';
import { AuditSealer } from '#domain/audit/seal/sealer.js';
import { systemClock } from '#platform/clock/clock.js';
import { parseCheckpoint } from '../../../packages/svc/src/audit/signed-note.js';
import { copyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.js';
import { writeEvent } from '../../support/feed-reader.js';
import { MOTO_CREDENTIALS, startMoto, type Moto } from '../../support/moto.js';
import { requires } from '../../support/programs.js';
import { count, rows } from '../../support/rows.js';
import { connectTo, endEpoch, TestSeal } from '../../support/seal.js';

const BUCKET = 'audit-checkpoints-of-test';
const DAYS = 7;

requires('moto').describe('the bucket of checkpoints', () => {
  const kept = { ...process.env };
  let moto: Moto;
  let client: S3Client;
  let store: CheckpointStore | undefined;
  let database: TestDatabase;
  let dataSource: DataSource;
  let seal: TestSeal;

  beforeAll(async () => {
    Object.assign(process.env, MOTO_CREDENTIALS);
    moto = await startMoto();
    client = new S3Client({ endpoint: moto.endpoint, forcePathStyle: true });
    await client.send(
      new CreateBucketCommand({
        Bucket: BUCKET,
        ObjectLockEnabledForBucket: true,
        CreateBucketConfiguration: { LocationConstraint: MOTO_CREDENTIALS.AWS_REGION },
      }),
    );
    store = await CheckpointStore.open({
      auditSeal: { bucket: BUCKET, retentionDays: DAYS, key: undefined, kmsKeyId: undefined },
      objectStore: {
        bucket: 'another',
        key: '',
        region: MOTO_CREDENTIALS.AWS_REGION,
        endpoint: moto.endpoint,
        pollSeconds: 60,
      },
      upstream: { providers: [], extraCaCerts: [] },
    });
    database = await createTestDatabase();
    dataSource = await connectTo(database);
    seal = new TestSeal(dataSource);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
    client.destroy();
    await moto.close();
    for (const name of Object.keys(MOTO_CREDENTIALS)) {
      if (kept[name] === undefined) delete process.env[name];
      else process.env[name] = kept[name];
    }
  });

  const sealInto = async (to: DataSource) => {
    await seal.settled();
    await new AuditSealer(to, systemClock, seal.key, store).seal();
  };

  it('locks each checkpoint, and refuses another one of the same size', async () => {
    const { org } = await seal.organization(0);
    await writeEvent(dataSource, org);
    await sealInto(dataSource);
    const [checkpoint] = await seal.checkpoints(org);
    const key = `audit-checkpoints/${org}/${checkpoint?.epoch}/${'1'.padStart(15, '0')}`;
    const stored = await client.send(new HeadObjectCommand({ Bucket: BUCKET, Key: key }));
    expect(stored.ObjectLockMode).toBe('COMPLIANCE');
    const until = stored.ObjectLockRetainUntilDate?.getTime() ?? 0;
    const days = (until - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(DAYS);
    expect(await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')).toBe(0);

    const [row] = await rows<{ epoch: string; note: string }>(
      dataSource,
      'SELECT epoch, note FROM audit_checkpoints WHERE tree = $1',
      [org],
    );
    const { epoch = '', note = '' } = row ?? {};
    const again = { tree: org, epoch, size: 1, note };
    await expect(store?.put(again, Date.now())).resolves.toBeUndefined();
    const other = { ...again, note: note.replace('time 2', 'time 3') };
    await expect(store?.put(other, Date.now())).rejects.toThrow('another object');
  });

  it('gets the checkpoints of the others if another object has the name of one', async () => {
    const [taken, other] = [await seal.organization(0), await seal.organization(0)];
    await writeEvent(dataSource, taken.org);
    await sealInto(dataSource);
    const [first] = await seal.checkpoints(taken.org);
    const folder = `audit-checkpoints/${taken.org}/${first?.epoch}`;
    const object = {
      Bucket: BUCKET,
      Key: `${folder}/${'2'.padStart(15, '0')}`,
      Body: 'planted'.repeat(200_000),
    };
    await client.send(new PutObjectCommand(object));
    await writeEvent(dataSource, taken.org);
    await writeEvent(dataSource, other.org);
    await expect(sealInto(dataSource)).rejects.toThrow(
      `tree ${taken.org} has an unpublished checkpoint: the store has another object`,
    );
    const unpublished = 'SELECT tree FROM audit_checkpoints WHERE published_at IS NULL';
    expect(await rows(dataSource, unpublished)).toEqual([{ tree: taken.org }]);
    const newest = await store?.newest(other.org, [seal.verifier]);
    expect(newest).toBe((await seal.checkpoints(other.org))[0]?.note);
    await dataSource.query('UPDATE audit_checkpoints SET published_at = now()');
  });

  it.each([
    ['no checkpoint', () => 'planted'],
    ['larger than any checkpoint', () => 'planted'.repeat(200_000)],
    [
      'a checkpoint without a signature of the seal',
      (note: string) => note.replace(/\n\d+\n/, '\n999\n'),
    ],
  ])('has an object that is %s, which the new tree does not name', async (_, planted) => {
    const { org } = await seal.organization(0);
    await writeEvent(dataSource, org);
    await sealInto(dataSource);
    const [last] = await seal.checkpoints(org);
    const Key = `audit-checkpoints/${org}/${last?.epoch}/${'999'.padStart(15, '0')}`;
    await client.send(
      new PutObjectCommand({ Bucket: BUCKET, Key, Body: planted(last?.note ?? '') }),
    );
    await endEpoch(dataSource);
    await writeEvent(dataSource, org);
    await sealInto(dataSource);
    const { findings } = seal.check(await seal.export(org), await seal.checkpoints(org));
    expect(findings).toEqual([]);
  });

  it('has the checkpoint that a restored database lost, which the new tree names', async () => {
    const { org } = await seal.organization(0);
    await writeEvent(dataSource, org);
    await sealInto(dataSource);
    await dataSource.destroy();
    const copy = await copyDatabase(database);
    dataSource = await connectTo(database);
    seal = new TestSeal(dataSource, seal.privateKey);
    await writeEvent(dataSource, org);
    await sealInto(dataSource);
    const lost = (await seal.checkpoints(org)).at(-1);
    expect(lost?.size).toBe(2);

    const restored = await connectTo(copy);
    try {
      const own = new TestSeal(restored, seal.privateKey);
      await endEpoch(restored);
      await writeEvent(restored, org);
      await own.settled();
      await sealInto(restored);
      const lines = await own.export(org);
      const leaf = lines.find((line) => line.includes('"checkpoint":')) ?? '{}';
      const { checkpoint } = JSON.parse(leaf) as { checkpoint?: string };
      expect(parseCheckpoint(checkpoint ?? '')).toEqual(lost);
      expect(own.check(lines, await own.checkpoints(org)).findings).toMatchObject([
        { fault: 'lost', index: 1, epoch: lost?.epoch },
      ]);
    } finally {
      await restored.destroy();
      await copy.drop();
    }
  });

  it('has the checkpoint of a tree that was removed with its rows, which the new tree names', async () => {
    const { org } = await seal.organization(0);
    await writeEvent(dataSource, org);
    await sealInto(dataSource);
    const removed = (await seal.checkpoints(org)).at(-1);
    for (const table of ['audit_checkpoints', 'audit_nodes', 'audit_leaves', 'audit_trees']) {
      await rows(dataSource, `DELETE FROM ${table} WHERE tree = $1`, [org]);
    }
    // Ends two epochs: in the next one, the restored copy of the test above has already stored
    // checkpoints.
    await endEpoch(dataSource);
    await endEpoch(dataSource);
    await writeEvent(dataSource, org);
    await sealInto(dataSource);
    const [, first = '{}'] = await seal.export(org);
    const { checkpoint } = JSON.parse(first) as { checkpoint?: string };
    expect(parseCheckpoint(checkpoint ?? '')).toEqual(removed);
  });
});
