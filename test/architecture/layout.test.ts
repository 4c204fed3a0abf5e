import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

/**
 * The files and folders that must exist in the root folder of the project (docs/architecture.md).
 */
const TOP_LEVEL = [
  'package.json',
  'nest-cli.json',
  'tsconfig.json',
  'src',
  'test',
  'migrations',
  'config',
  'Dockerfile',
  'helm',
  'deploy',
];

describe('the top level', () => {
  it.each(TOP_LEVEL)('has %s', (name) => {
    expect(existsSync(join(ROOT, name))).toBe(true);
  });
});
