import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file that pages use, held in memory. */
export interface StaticFile {
  readonly type: string;
  readonly content: Buffer;
  readonly etag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Reads every file of a folder once; what is not in the map does not exist, whatever path is asked for. */
export function readStaticFiles(folder: URL): ReadonlyMap<string, StaticFile> {
  const path = fileURLToPath(folder);
  return new Map(
    readdirSync(path).map((name) => {
      const content = readFileSync(join(path, name));
      const etag = `"${createHash('sha256').update(content).digest('base64url')}"`;
      return [name, { type: TYPES[extname(name)] ?? 'application/octet-stream', content, etag }];
    }),
  );
}
