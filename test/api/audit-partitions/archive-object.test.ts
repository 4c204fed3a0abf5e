import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { adminCommand, handTo } from '../../support/break-glass.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { MOTO_CREDENTIALS, startMoto, type Moto } from '../../support/moto.js';
import { requires } from '../../support/programs.js';
import { rows } from '../../support/rows.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const Bucket = 'archives-of-test';
const Key = 'oauth/2026-01.ndjson';
const MANIFEST = `${Key}.manifest.json`;

/**
 * The least bytes of each part of the upload except the last: `archive-copy.ts` adds whole lines
 * until a part has this size.
 */
const PART = 8 * 1024 * 1024;

requires('moto').describe('node dist/admin.js archive --to s3://BUCKET/KEY', () => {
  const kept = { ...process.env };
  let moto: Moto;
  let client: S3Client;
  let database: TestDatabase;
  let app: TestApp;
  let folder: string;
  /** The archive of the same month as the command writes it to a file. */
  let expected: Buffer;

  beforeAll(async () => {
    Object.assign(process.env, MOTO_CREDENTIALS);
    moto = await startMoto();
    client = new S3Client({ endpoint: moto.endpoint, forcePathStyle: true });
    const CreateBucketConfiguration = { LocationConstraint: MOTO_CREDENTIALS.AWS_REGION };
    await client.send(new CreateBucketCommand({ Bucket, CreateBucketConfiguration }));
    folder = await makeTemporaryDirectory();
    database = await createTestDatabase();
    app = await startTestApp({ database, environment: { SVC_CLEANUP_INTERVAL: '0' } });
    await handTo(app.dataSource, 'production');
    await rows(
      app.dataSource,
      `INSERT INTO audit_events (id, type, class, details, created_at)
       SELECT gen_random_uuid(), 'type ' || n, 'oauth', jsonb_build_object('text', repeat(md5(n::text), 320)), '2026-01-01 00:00:00+00'
       FROM generate_series(1, 1200) n`,
    );
    await archive(join(folder, 'file'));
    expected = await readFile(join(folder, 'file'));
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
    await removeDirectory(folder);
    client.destroy();
    await moto.close();
    for (const name of Object.keys(MOTO_CREDENTIALS)) {
      if (kept[name] === undefined) delete process.env[name];
      else process.env[name] = kept[name];
    }
  });
  beforeEach(async () => {
    for (const each of [Key, MANIFEST]) {
      await client.send(new DeleteObjectCommand({ Bucket, Key: each }));
    }
  });

  const archive = (to = `s3://${Bucket}/${Key}`) =>
    adminCommand(['archive', '--class', 'oauth', '--month', '2026-01', '--to', to], {
      url: database.url,
      environment: {
        SVC_S3_CONFIG_BUCKET: 'another',
        SVC_S3_CONFIG_ENDPOINT: moto.endpoint,
        SVC_S3_CONFIG_REGION: MOTO_CREDENTIALS.AWS_REGION,
      },
    });
  const stored = async (key = Key) => {
    const { Body: body } = await client.send(new GetObjectCommand({ Bucket, Key: key }));
    return Buffer.from((await body?.transformToByteArray()) ?? []);
  };
  const uploads = async () => {
    const answer = await client.send(new ListMultipartUploadsCommand({ Bucket }));
    return answer.Uploads ?? [];
  };

  it('writes the lines of a file in parts, reads them back, and then writes the manifest', async () => {
    const { status, stdout, stderr } = await archive();
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`s3://${Bucket}/${Key}: 1200 events, ${expected.length} bytes`);
    expect(expected.length).toBeGreaterThan(PART);
    expect((await stored()).equals(expected)).toBe(true);
    const manifest = await readFile(join(folder, 'file.manifest.json'), 'utf8');
    expect((await stored(MANIFEST)).toString()).toBe(manifest);
    expect(await uploads()).toEqual([]);
    // A second run compares the object with the log and succeeds.
    expect((await archive()).status).toBe(0);
  });

  it('goes on with an upload that was interrupted, and replaces a part that is wrong', async () => {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    const begun = { Bucket, Key, UploadId };
    const first = expected.subarray(0, expected.indexOf('\n', PART - 1) + 1);
    await client.send(new UploadPartCommand({ ...begun, PartNumber: 1, Body: first }));
    await client.send(new UploadPartCommand({ ...begun, PartNumber: 2, Body: Buffer.from('x') }));
    expect((await archive()).status).toBe(0);
    expect((await stored()).equals(expected)).toBe(true);
    // A new upload would have left the interrupted one open.
    expect(await uploads()).toEqual([]);
  });

  it('refuses an object that differs from the log, and writes no manifest', async () => {
    const Body = Buffer.from(expected.toString().replace('"type 9"', '"type 8"'));
    await client.send(new PutObjectCommand({ Bucket, Key, Body }));
    const { status, stderr } = await archive();
    expect(status).toBe(1);
    expect(stderr).toMatch(/^s3:\/\/archives-of-test\/\S+ differs from the log in line \d+\./);
    expect((await stored()).equals(Body)).toBe(true);
    await expect(stored(MANIFEST)).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  it('says in one line that a bucket is missing, and that a place is none', async () => {
    const { status, stderr } = await archive('s3://no-such-bucket-of-test/x');
    expect([status, stderr]).toEqual([1, 'the bucket does not exist\n']);
    for (const place of ['s3://', 's3://bucket', 's3:/bucket/x', 's3://Bucket/x']) {
      expect((await archive(place)).status).toBe(2);
    }
  });
});
