import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/**
 * The released migrations, which an installation may have run, each with the digest of its text.
 * The file is the output of `sha256sum *.sql` in `migrations`.
 */
const RELEASED = readFileSync('test/vectors/released-migrations.txt', 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split('  ') as [digest: string, name: string]);

describe('a released migration', () => {
  it('keeps its text, because an installation that ran it never runs it again', () => {
    const changed = RELEASED.filter(
      ([digest, name]) =>
        createHash('sha256')
          .update(readFileSync(`migrations/${name}`))
          .digest('hex') !== digest,
    );
    expect(changed).toEqual([]);
  });
});
