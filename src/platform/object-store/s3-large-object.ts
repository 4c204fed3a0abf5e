import { hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { ObjectStoreError } from './object-store-error.js';
import { openClient, TIME_LIMIT, withinLimit, type S3Server } from './s3-client.js';

/** The server, the bucket and the key of an object in an object store. */
export interface LargeObjectLocation extends S3Server {
  readonly bucket: string;
  readonly key: string;
}

/**
 * An object of any size, which is written once and never replaced. Each method rejects with an
 * {@link ObjectStoreError}.
 */
export interface LargeObject {
  isThere(): Promise<boolean>;
  /**
   * Writes the object in parts. Each part but the last has at least 5 MiB. If an interrupted call
   * has already uploaded some of the parts, parts with the same bytes are not uploaded again.
   */
  write(parts: AsyncIterable<Buffer>): Promise<void>;
  /** Reads the object from its beginning. The object must not change meanwhile. */
  read(): AsyncIterable<Buffer>;
  /**
   * Writes a small object under the key of this object plus `ending`. A later call may replace it.
   */
  writeBeside(ending: string, body: Buffer): Promise<void>;
}

/** The milliseconds for a request with a part of the object. */
const PART_TIME_LIMIT = 300_000;

/** The bytes that one request reads. */
const READ_AT_ONCE = 8 * 1024 * 1024;

/** A multipart upload of an object that has begun and is not complete. */
interface Upload {
  readonly id: string;
  /** The entity tags of its parts, by their numbers. */
  readonly tags: ReadonlyMap<number, string>;
}

/** An uploaded part, as the request that completes the upload lists it. */
interface Part {
  readonly PartNumber: number;
  readonly ETag: string | undefined;
}

/** Opens an object of any size in a store. */
export async function openLargeObject({
  bucket,
  key,
  ...server
}: LargeObjectLocation): Promise<LargeObject> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = await openClient(server);
  const object = { Bucket: bucket, Key: key };
  const head = () =>
    withinLimit(TIME_LIMIT, undefined, (abortSignal) =>
      client.send(new sdk.HeadObjectCommand(object), { abortSignal }),
    );
  return {
    isThere: async () => {
      try {
        await head();
        return true;
      } catch (error) {
        if (error instanceof ObjectStoreError && error.fault === 'no-object') return false;
        throw error;
      }
    },
    write: (parts) => write(client, object, parts),
    async *read() {
      const { ContentLength: length = 0, ETag: tag } = await head();
      for (let from = 0; from < length; from += READ_AT_ONCE) {
        yield await withinLimit(PART_TIME_LIMIT, undefined, async (abortSignal) => {
          const Range = `bytes=${from}-${Math.min(length, from + READ_AT_ONCE) - 1}`;
          const command = new sdk.GetObjectCommand({ ...object, Range, IfMatch: tag });
          const { Body: body } = await client.send(command, { abortSignal });
          return Buffer.concat(await (body as Readable).toArray());
        });
      }
    },
    writeBeside: async (ending, body) => {
      await withinLimit(TIME_LIMIT, undefined, (abortSignal) => {
        const command = new sdk.PutObjectCommand({ ...object, Key: `${key}${ending}`, Body: body });
        return client.send(command, { abortSignal });
      });
    },
  };
}

/** Writes an object by a multipart upload, or as a whole if it is empty. */
async function write(
  client: S3Client,
  object: { readonly Bucket: string; readonly Key: string },
  parts: AsyncIterable<Buffer>,
): Promise<void> {
  const sdk = await import('@aws-sdk/client-s3');
  const upload = await openUpload(client, object);
  const inUpload = { ...object, UploadId: upload.id };
  const written: Part[] = [];
  for await (const body of parts) {
    const number = written.length + 1;
    const known = upload.tags.get(number);
    // The entity tag of a part is the MD5 of its bytes, except if a key of KMS encrypts the part. A
    // part that is encrypted by a key of KMS is uploaded again.
    const isThere = known === `"${hash('md5', body, 'hex')}"`;
    const tag = isThere ? known : await putPart(client, { ...inUpload, PartNumber: number }, body);
    written.push({ PartNumber: number, ETag: tag });
  }
  await withinLimit(PART_TIME_LIMIT, undefined, async (abortSignal) => {
    if (written.length === 0) {
      const empty = { ...object, Body: Buffer.alloc(0), IfNoneMatch: '*' };
      await client.send(new sdk.PutObjectCommand(empty), { abortSignal });
      await client.send(new sdk.AbortMultipartUploadCommand(inUpload), { abortSignal });
      return;
    }
    const completed = { ...inUpload, MultipartUpload: { Parts: written }, IfNoneMatch: '*' };
    await client.send(new sdk.CompleteMultipartUploadCommand(completed), { abortSignal });
  });
}

/** Uploads one part, and returns its entity tag; undefined if the store sends none. */
async function putPart(
  client: S3Client,
  part: {
    readonly Bucket: string;
    readonly Key: string;
    readonly UploadId: string;
    readonly PartNumber: number;
  },
  body: Buffer,
): Promise<string | undefined> {
  const { UploadPartCommand } = await import('@aws-sdk/client-s3');
  const ContentMD5 = hash('md5', body, 'base64');
  return withinLimit(PART_TIME_LIMIT, undefined, async (abortSignal) => {
    const command = new UploadPartCommand({ ...part, Body: body, ContentMD5 });
    return (await client.send(command, { abortSignal })).ETag;
  });
}

/** Finds an interrupted upload of the object and its parts, or begins an upload. */
async function openUpload(
  client: S3Client,
  object: { readonly Bucket: string; readonly Key: string },
): Promise<Upload> {
  const sdk = await import('@aws-sdk/client-s3');
  return withinLimit(PART_TIME_LIMIT, undefined, async (abortSignal) => {
    const listing = { Bucket: object.Bucket, Prefix: object.Key };
    const { Uploads: uploads = [] } = await client.send(
      new sdk.ListMultipartUploadsCommand(listing),
      { abortSignal },
    );
    const begun = uploads.findLast(({ Key: key }) => key === object.Key)?.UploadId;
    if (begun === undefined) {
      const command = new sdk.CreateMultipartUploadCommand(object);
      const { UploadId: id = '' } = await client.send(command, { abortSignal });
      return { id, tags: new Map() };
    }
    const tags = new Map<number, string>();
    for (let PartNumberMarker: string | undefined; ;) {
      const command = new sdk.ListPartsCommand({ ...object, UploadId: begun, PartNumberMarker });
      const page = await client.send(command, { abortSignal });
      for (const { PartNumber: number = 0, ETag: tag = '' } of page.Parts ?? []) {
        tags.set(number, tag);
      }
      // The marker does not show if another page follows, because a store may also send a marker
      // with the last page.
      if (page.IsTruncated !== true) break;
      PartNumberMarker = page.NextPartNumberMarker;
    }
    return { id: begun, tags };
  });
}
