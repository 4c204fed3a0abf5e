import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { encodedDocument, type EncodedDocument } from '#platform/http/request/encoded-document.js';

/** A file that pages load, such as a script. Its content is kept in memory. */
export interface StaticFile extends EncodedDocument {
  readonly type: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.yaml': 'text/plain; charset=utf-8',
};

/**
 * Reads every file of a folder and its subfolders into a map by the name of the file. Only these
 * names can be requested.
 */
export function readStaticFiles(folder: URL): ReadonlyMap<string, StaticFile> {
  const path = fileURLToPath(folder);
  return new Map(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const name = basename(entry.name);
        const content = readFileSync(join(entry.parentPath, name));
        const hash = createHash('sha256').update(content).digest('base64url');
        const type = TYPES[extname(name)] ?? 'application/octet-stream';
        return [name, { type, ...encodedDocument(content, `"${hash}"`) }];
      }),
  );
}
