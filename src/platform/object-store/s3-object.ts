import { hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { ObjectStoreError } from './object-store-error.js';
import { openClient, TIME_LIMIT, withinLimit, type S3Server } from './s3-client.js';

/** The server, the bucket and the key of an object in an object store. */
export interface ObjectLocation extends S3Server {
  readonly bucket: string;
  readonly key: string;
}

/** The server, the bucket and the name of a folder in an object store. */
export interface LockedLocation extends S3Server {
  readonly bucket: string;
  readonly folder: string;
}

/**
 * A folder of objects that cannot be changed or deleted for a time. Each method rejects with an
 * {@link ObjectStoreError}.
 */
export interface LockedFolder {
  read(name: string, signal?: AbortSignal): Promise<Buffer>;
  /**
   * Writes an object that the store keeps until `retainUntil`. If the folder has an object of this
   * name already, the call succeeds only if both have the same bytes.
   */
  write(name: string, body: Buffer, retainUntil: Date, signal?: AbortSignal): Promise<void>;
  /**
   * Lists the names that begin with `prefix` and sort after `after`, in ascending order and at most
   * 1,000.
   */
  namesAfter(prefix: string, after: string, signal?: AbortSignal): Promise<string[]>;
}

/**
 * The contents of an object, and the entity tag, which changes with them; undefined if the store
 * sends none.
 */
export interface StoredObject {
  readonly bytes: Buffer;
  readonly etag: string | undefined;
}

/** Reads one object of an object store. Each method rejects with an {@link ObjectStoreError}. */
export interface ObjectReader {
  /** Reads only the entity tag (HEAD); undefined if the store sends none. */
  etag(signal?: AbortSignal): Promise<string | undefined>;
  /** Reads the bytes of the object (GET). */
  read(signal?: AbortSignal): Promise<StoredObject>;
}

/** The largest number of bytes of an object that is read. */
const MAX_BYTES = 1024 * 1024;

/**
 * Opens one object of an S3 store for reading, by HEAD and GET. It limits the size of the object
 * and the time of a read, because the SDK limits neither.
 */
export async function openS3Object(
  { bucket, key, region, endpoint, extraCaCerts }: ObjectLocation,
  timeLimit = TIME_LIMIT,
): Promise<ObjectReader> {
  const { GetObjectCommand, HeadObjectCommand } = await import('@aws-sdk/client-s3');
  const client = await openClient({ region, endpoint, extraCaCerts });
  const object = { Bucket: bucket, Key: key };
  return {
    etag: (signal) =>
      withinLimit(timeLimit, signal, async (abortSignal) => {
        const answer = await client.send(new HeadObjectCommand(object), { abortSignal });
        return answer.ETag;
      }),
    read: (signal) =>
      withinLimit(timeLimit, signal, async (abortSignal) => {
        const answer = await client.send(new GetObjectCommand(object), { abortSignal });
        const bytes = await readAll(answer.Body as Readable, abortSignal);
        return { bytes, etag: answer.ETag };
      }),
  };
}

/**
 * Opens a folder of a bucket for objects that cannot be changed or deleted for a time (S3 Object
 * Lock in the mode COMPLIANCE). The bucket must have Object Lock turned on. Like {@link
 * openS3Object}, it limits the size of an object and the time of a request.
 */
export async function openLockedFolder(
  { bucket, folder, ...server }: LockedLocation,
  timeLimit = TIME_LIMIT,
): Promise<LockedFolder> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = await openClient(server);
  const object = (name: string) => ({ Bucket: bucket, Key: `${folder}/${name}` });
  const read = (name: string, signal?: AbortSignal) =>
    withinLimit(timeLimit, signal, async (abortSignal) => {
      const answer = await client.send(new sdk.GetObjectCommand(object(name)), { abortSignal });
      return readAll(answer.Body as Readable, abortSignal);
    });
  const write = (name: string, body: Buffer, retainUntil: Date, signal?: AbortSignal) =>
    withinLimit(timeLimit, signal, async (abortSignal) => {
      const command = new sdk.PutObjectCommand({
        ...object(name),
        Body: body,
        ContentMD5: hash('md5', body, 'base64'), // required for an object with a lock
        IfNoneMatch: '*',
        ObjectLockMode: 'COMPLIANCE',
        ObjectLockRetainUntilDate: retainUntil,
      });
      await client.send(command, { abortSignal });
    });
  return {
    read,
    write: async (name, body, retainUntil, signal) => {
      try {
        await write(name, body, retainUntil, signal);
      } catch (error) {
        const { cause } = error as { readonly cause?: { readonly name?: unknown } };
        if (cause?.name !== 'PreconditionFailed') throw error;
        if (await hasBytes(read(name, signal), body)) return;
        throw new ObjectStoreError('conflict', `has another object with the name ${name}`);
      }
    },
    namesAfter: (prefix, after, signal) =>
      withinLimit(timeLimit, signal, async (abortSignal) => {
        const command = new sdk.ListObjectsV2Command({
          Bucket: bucket,
          Prefix: `${folder}/${prefix}`,
          StartAfter: `${folder}/${after}`,
        });
        const { Contents: found = [] } = await client.send(command, { abortSignal });
        return found.map(({ Key = '' }) => Key.slice(folder.length + 1));
      }),
  };
}

/** Returns true if an object that is read has some bytes; false also if it is too large. */
async function hasBytes(reading: Promise<Buffer>, bytes: Buffer): Promise<boolean> {
  try {
    return (await reading).equals(bytes);
  } catch (error) {
    if (error instanceof ObjectStoreError && error.fault === 'too-large') return false;
    throw error;
  }
}

async function readAll(body: Readable, signal: AbortSignal): Promise<Buffer> {
  const stop = () => body.destroy(signal.reason);
  signal.addEventListener('abort', stop);
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MAX_BYTES) throw new ObjectStoreError('too-large', 'is larger than 1 MiB');
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
