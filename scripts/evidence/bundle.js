import { createHash } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { entriesOf, writeTarGz } from '../release/tar.js';

/**
 * Writes the files of the bundle to a folder of their own, with their hashes, and an archive of the
 * folder beside it. It replaces those of an earlier run. The archive depends on the files and the
 * time alone.
 *
 * @param {{ out: string, name: string, files: Record<string, string>, time: number }} options the
 *   folder for both, the name of the bundle, the text of each file, and the time of the entries in
 *   seconds
 * @returns {Promise<string>} the path of the archive
 */
export async function writeBundle({ out, name, files, time }) {
  const folder = join(out, name);
  rmSync(folder, { recursive: true, force: true });
  const listed = Object.entries(files).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const sums = listed.map(([path, text]) => `${sha256(text)}  ${path}\n`).join('');
  for (const [path, text] of [...listed, ['SHA256SUMS', sums]]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const archive = join(out, `${name}.tar.gz`);
  const entries = [{ path: name, type: 'folder' }, ...entriesOf(folder, name, new Set())];
  await writeTarGz(archive, entries, time);
  return archive;
}

function sha256(text) {
  return createHash('sha256').update(text).digest('hex');
}
