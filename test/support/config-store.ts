import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { startFaultProxy, type FaultProxy } from './fault-proxy.js';
import { MOTO_CREDENTIALS, startMoto } from './moto.js';

/**
 * A bucket in moto (a stand-in for AWS) that has a configuration document. The service reads it
 * through a proxy that can cause faults.
 */
export interface ConfigStore {
  readonly proxy: FaultProxy;
  /** The variables that name the bucket and its endpoint, and the credentials for the AWS SDK. */
  readonly environment: Readonly<Record<string, string>>;
  /**
   * Writes the document into the bucket. An object is written as JSON with `version: 1`, and a text
   * or bytes as they are.
   */
  put(document: object | string | Buffer): Promise<void>;
  close(): Promise<void>;
}

const BUCKET = 'svc-config';

/**
 * Starts moto (a stand-in for AWS) and creates a bucket. Until `close`, the variables of this
 * process have credentials for moto.
 */
export async function startConfigStore(): Promise<ConfigStore> {
  const moto = await startMoto();
  const proxy = await startFaultProxy(moto.endpoint);
  const kept = { ...process.env };
  Object.assign(process.env, MOTO_CREDENTIALS);
  const client = new S3Client({ endpoint: moto.endpoint, forcePathStyle: true });
  await client.send(
    new CreateBucketCommand({
      Bucket: BUCKET,
      CreateBucketConfiguration: { LocationConstraint: MOTO_CREDENTIALS.AWS_REGION },
    }),
  );
  return {
    proxy,
    environment: {
      ...MOTO_CREDENTIALS,
      SVC_S3_CONFIG_BUCKET: BUCKET,
      SVC_S3_CONFIG_ENDPOINT: proxy.endpoint,
    },
    async put(document) {
      const isRaw = typeof document === 'string' || Buffer.isBuffer(document);
      const Body = isRaw ? document : JSON.stringify({ version: 1, ...document });
      const Key = 'config/svc-server.json';
      await client.send(new PutObjectCommand({ Bucket: BUCKET, Key, Body }));
    },
    async close() {
      client.destroy();
      await proxy.close();
      await moto.close();
      for (const name of Object.keys(MOTO_CREDENTIALS)) {
        if (kept[name] === undefined) delete process.env[name];
        else process.env[name] = kept[name];
      }
    },
  };
}
