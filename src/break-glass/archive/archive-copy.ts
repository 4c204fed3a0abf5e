import { createReadStream } from 'node:fs';
import type { FeedPlace } from '#domain/audit/feed/audit-feed.repository.js';
import { FIRST_PLACE } from '#domain/audit/feed/audit-feed.repository.js';
import {
  openLargeObject,
  type LargeObjectLocation,
} from '#platform/object-store/s3-large-object.js';
import { append, continueAfter, finish, isThere, writeWhole } from './archive-file.js';

/**
 * The size in bytes at which a part of an object is uploaded. S3 demands at least 5 MiB for every
 * part but the last.
 */
const PART = 8 * 1024 * 1024;

/**
 * The ending of the name of the manifest, a JSON document with the number of events, the size and
 * the SHA-256 of a copy.
 */
const MANIFEST = '.manifest.json';

/**
 * A copy of one month of the audit log, in a file or in an object of an object store (S3). It has
 * one line for each event.
 */
export interface ArchiveCopy {
  readonly name: string;
  /** Returns true if the complete copy exists already. It is then only compared with the log. */
  isThere(): Promise<boolean>;
  /**
   * Writes the copy. If an earlier call was interrupted, this call continues its work.
   * @param linesAfter returns the lines of the events that follow a position in the audit feed
   */
  write(linesAfter: (place: FeedPlace) => AsyncIterable<string>): Promise<void>;
  /** Reads the bytes of the copy, so that they can be compared with the log. */
  read(): AsyncIterable<Buffer>;
  /** Gives the copy its final name. It is called after the copy was found equal to the log. */
  finish(): Promise<void>;
  /** Writes the manifest, the document that describes the copy, beside the copy. */
  writeManifest(text: string): Promise<void>;
}

/** Returns the copy in a file. Until it is finished, the file has the ending `.part`. */
export async function fileCopy(path: string): Promise<ArchiveCopy> {
  const isOld = await isThere(path);
  const current = isOld ? path : `${path}.part`;
  return {
    name: current,
    isThere: () => Promise.resolve(isOld),
    write: async (linesAfter) => append(current, linesAfter(await continueAfter(current))),
    read: () => createReadStream(current),
    finish: () => (isOld ? Promise.resolve() : finish(current, path)),
    writeManifest: (text) => writeWhole(`${path}${MANIFEST}`, text),
  };
}

/**
 * Returns the copy in an object of an object store. The object becomes visible when all its parts
 * are uploaded. The manifest is written after the object was compared with the log.
 */
export async function objectCopy(location: LargeObjectLocation): Promise<ArchiveCopy> {
  const object = await openLargeObject(location);
  return {
    name: `s3://${location.bucket}/${location.key}`,
    isThere: () => object.isThere(),
    write: (linesAfter) => object.write(partsOf(linesAfter(FIRST_PLACE))),
    read: () => object.read(),
    finish: () => Promise.resolve(),
    writeManifest: (text) => object.writeBeside(MANIFEST, Buffer.from(text)),
  };
}

/**
 * Splits lines into the parts of a multipart upload. The same lines always give the same parts, so
 * that a repeated upload can leave out the parts that the store already has.
 */
async function* partsOf(lines: AsyncIterable<string>): AsyncGenerator<Buffer> {
  let [text, length] = [[] as Buffer[], 0];
  for await (const line of lines) {
    const bytes = Buffer.from(`${line}\n`);
    text.push(bytes);
    length += bytes.length;
    if (length < PART) continue;
    yield Buffer.concat(text);
    [text, length] = [[], 0];
  }
  if (length > 0) yield Buffer.concat(text);
}
