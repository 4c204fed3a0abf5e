import { createReadStream } from 'node:fs';
import type { FeedPlace } from '#domain/audit/feed/audit-feed.repository.js';
import { FIRST_PLACE } from '#domain/audit/feed/audit-feed.repository.js';
import {
  openLargeObject,
  type LargeObjectLocation,
} from '#platform/object-store/s3-large-object.js';
import { append, continueAfter, finish, isThere, writeWhole } from './archive-file.js';

/** The bytes of a part of an object. Only the last part may have fewer than 5 MiB. */
const PART = 8 * 1024 * 1024;

/** The ending of the name of the manifest. */
const MANIFEST = '.manifest.json';

/** A copy of events: a file, or an object of a store. */
export interface ArchiveCopy {
  readonly name: string;
  /** Returns true if the copy is there already, so that it is compared only. */
  isThere(): Promise<boolean>;
  /** Writes the lines of a copy that is not there. It goes on after an interrupted call. */
  write(linesAfter: (place: FeedPlace) => AsyncIterable<string>): Promise<void>;
  /** Reads the bytes of the copy back. */
  read(): AsyncIterable<Buffer>;
  /** Gives a copy its name, after it was compared. */
  finish(): Promise<void>;
  /** Writes the document that describes the copy, beside it. */
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
 * Returns the copy in an object of a store. The object appears when all of its parts are there, and
 * the manifest when it was compared.
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

/** Joins lines to parts. The same lines always make the same parts. */
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
