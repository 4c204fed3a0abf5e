import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSource, type SourceFile } from './import-graph.js';

/**
 * Libraries that only some settings need. A service without the setting must not load them, because
 * they cost start time and memory.
 */
const LAZY = [
  '@aws-sdk/client-kms',
  '@aws-sdk/client-s3',
  '@node-saml/node-saml',
  '@opentelemetry/auto-instrumentations-node',
  '@opentelemetry/otlp-transformer',
  '@opentelemetry/sdk-node',
  '@xmldom/xmldom',
  'xml-crypto',
];

/**
 * Finds the targets of imports and re-exports that are loaded together with a file. Type-only
 * imports and calls of `import()` are left out.
 */
function loadedAtOnce({ path, text }: SourceFile): string[] {
  const pattern = /^(?:import|export) (?!type\b)(?:[^;']*from )?'([^']+)'/gm;
  return [...text.matchAll(pattern)].map(([, target = '']) => {
    const source = target.replace(/\.js$/, '.ts');
    if (source.startsWith('#')) return `src/${source.slice(1)}`;
    return source.startsWith('.') ? join(dirname(path), source) : target;
  });
}

/** Source files of ours that a process loads only for the first request that needs them. */
const LAZY_FILES = ['src/platform/http/openapi/api-document.ts'];

/**
 * Returns everything that a start in production loads with any settings: our own files, and the
 * packages, each with one file that imports it.
 */
function loadedByStart(entries: readonly string[]): {
  readonly files: ReadonlySet<string>;
  readonly packages: ReadonlyMap<string, string>;
} {
  const packages = new Map<string, string>();
  const seen = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const target of loadedAtOnce(readSource(path))) {
      if (target.startsWith('src/')) visit(target);
      else packages.set(target, path);
    }
  };
  entries.forEach(visit);
  return { files: seen, packages };
}

const { files, packages } = loadedByStart([
  'src/platform/config-sources/read-configuration.ts',
  'src/platform/telemetry/tracing.ts',
  'src/production.ts',
]);

describe('the libraries of a setting', () => {
  it('are loaded only if it is configured: KMS, S3, SAML, OpenTelemetry', () => {
    expect(packages.has('oidc-provider')).toBe(true);
    const found = LAZY.filter((name) => packages.has(name));
    expect(found.map((name) => `${name}: ${packages.get(name)}`)).toEqual([]);
  });

  it('are seen in every form of an import', () => {
    const path = 'src/x/y.ts';
    const at = (text: string) => loadedAtOnce({ path, text, imports: [] });
    expect(at("import { SAML } from '@node-saml/node-saml';")).toEqual(['@node-saml/node-saml']);
    expect(at("import {\n  a,\n} from './a.js';\nimport 'b';")).toEqual(['src/x/a.ts', 'b']);
    expect(at("export { a } from '../z/a.js';")).toEqual(['src/z/a.ts']);
    expect(at("import type { SAML } from 'x';\nconst a = await import('x');")).toEqual([]);
  });
});

describe('the writer of the OpenAPI document', () => {
  it('is loaded by the first request for it', () => {
    expect(files.has('src/platform/http/openapi/api-document.service.ts')).toBe(true);
    expect(LAZY_FILES.filter((path) => files.has(path))).toEqual([]);
    LAZY_FILES.forEach((path) => readSource(path)); // throws if a file of the list does not exist
  });
});
