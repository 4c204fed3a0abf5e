import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sourceFiles } from './import-graph.js';

const OWNERS: Readonly<Record<string, string>> = {
  '@aws-sdk/client-s3': 'src/platform/object-store',
};

/**
 * Matches a static import of the SDK, which loads it together with the file. An `import type` loads
 * nothing.
 */
const LOADED_AT_ONCE = /^import (?!type\b)[^;]*from '@aws-sdk\//m;

describe('the AWS SDK', () => {
  const users = sourceFiles('src').filter(({ imports }) =>
    imports.some((name) => name.startsWith('@aws-sdk/')),
  );

  it('is loaded only where it is configured, by a call of import()', () => {
    expect(users.length).toBeGreaterThan(0);
    expect(users.filter(({ text }) => LOADED_AT_ONCE.test(text)).map(({ path }) => path)).toEqual(
      [],
    );
    expect("import { S3Client } from '@aws-sdk/client-s3';").toMatch(LOADED_AT_ONCE);
    expect("import type { S3Client } from '@aws-sdk/client-s3';").not.toMatch(LOADED_AT_ONCE);
  });

  it('has one folder for S3', () => {
    for (const [name, owner] of Object.entries(OWNERS)) {
      const found = users.filter(({ imports }) => imports.includes(name));
      expect([...new Set(found.map(({ path }) => dirname(path)))]).toEqual([owner]);
    }
  });
});
