import { hash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Remembers the kinds of elements (see `elementKinds`) on all pages that this test run has checked.
 * So a check can leave out equal elements. The worker processes share a file, which has the digest
 * of a kind on each line.
 */
export class CheckedKinds {
  readonly #known = new Set<string>();

  /** Returns true if one of these kinds was not on any page that was checked before. */
  lack(kinds: readonly string[]): boolean {
    for (const digest of linesOf(fileOfRun())) this.#known.add(digest);
    return kinds.some((kind) => !this.#known.has(digestOf(kind)));
  }

  /** Adds the kinds of a page that passed its check. */
  add(kinds: readonly string[]): void {
    const added = kinds.map(digestOf).filter((digest) => !this.#known.has(digest));
    for (const digest of added) this.#known.add(digest);
    const file = fileOfRun();
    if (file !== undefined && added.length > 0) appendFileSync(file, `${added.join('\n')}\n`);
  }
}

/**
 * Returns the path of the shared file; undefined if the run has no folder. The file is in the
 * folder of recorded responses, whose reader ignores it because of its name.
 */
function fileOfRun(): string | undefined {
  const folder = process.env['TEST_TRAFFIC'];
  return folder === undefined ? undefined : join(folder, 'checked-kinds');
}

function linesOf(file: string | undefined): string[] {
  return file !== undefined && existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
}

function digestOf(kind: string): string {
  return hash('sha256', kind, 'base64url');
}
