import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf, readSource } from './import-graph.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** The part of the bundler's configuration that the tests read. */
interface Configuration {
  readonly input: Readonly<Record<string, string>>;
  readonly external: (id: string) => boolean;
  readonly plugins: readonly Plugin[];
}

interface Plugin {
  readonly name: string;
  readonly resolveId?: (id: string, importer: string) => string | undefined;
  readonly load?: (id: string) => string | undefined;
}

interface Script {
  readonly default: Configuration;
  readonly compiledPath: (path: string) => string;
  readonly escapeToAscii: (code: string) => string;
  readonly isUnused: (id: string) => boolean;
}

const script = new URL('../../scripts/server-bundle.js', import.meta.url).href;
const { default: bundle, compiledPath, escapeToAscii, isUnused } = (await import(script)) as Script;
const { imports }: { imports: Readonly<Record<string, Readonly<Record<string, string>>>> } =
  JSON.parse(readFileSync(resolve(ROOT, 'package.json'), 'utf8'));

const ENTRY = /^#entry\/(.+)\.js$/;
const entries = Object.entries(imports).flatMap(([name, paths]) => {
  const entry = ENTRY.exec(name)?.[1];
  return entry === undefined ? [] : [{ entry, paths }];
});

describe('the bundle of the server', () => {
  it('has an entry for each import of package.json, from the same source', () => {
    const named = entries.map(({ entry, paths }) => [entry, paths['source']?.slice('./'.length)]);
    expect(Object.fromEntries(named)).toEqual(bundle.input);
    expect(named.length).toBeGreaterThan(4);
  });

  it('is what every condition but those of the tests and of npm run dev finds', () => {
    for (const { entry, paths } of entries) {
      const compiled = paths['source']?.replace('./src/', './dist/').replace(/\.ts$/, '') ?? '';
      expect(paths).toEqual({
        source: paths['source'],
        types: `${compiled}.d.ts`,
        unbundled: `${compiled}.js`,
        default: `./dist/bundle/${entry}.js`,
      });
    }
  });

  it('is loaded by every entry point, after the check of the version of Node', () => {
    for (const path of ['src/main.ts', 'src/admin.ts', 'src/migrate.ts', 'src/demo/main.ts']) {
      const { text } = readSource(path);
      const loaded = importsOf(text).filter(
        (target) => !/^\.\.?\/(?:node-version|start)\.js$/.test(target),
      );
      expect(loaded, path).not.toEqual([]);
      expect(
        loaded.filter((target) => !ENTRY.test(target)),
        path,
      ).toEqual([]);
    }
  });

  it.each(['pg', 'pg-protocol/dist/messages.js', 'cbor-extract', '@aws-sdk/client-kms'])(
    'leaves out a package that tracing, a binary or a setting needs as a module: %s',
    (name) => {
      expect(bundle.external(name)).toBe(true);
    },
  );

  it.each([
    ['src/features/pages/pages.module.ts', 'dist/features/pages/pages.module.js'],
    ['packages/openssh/src/index.ts', 'packages/openssh/dist/index.js'],
    ['node_modules/x/src/y.ts', 'node_modules/x/src/y.ts'],
    ['src/a/src/b.ts', 'dist/a/src/b.js'],
  ])('finds the files beside a module where it was compiled to: %s', (source, compiled) => {
    expect(compiledPath(source)).toBe(compiled);
  });

  it('finds the rendered documents from the compiled module as from the source', () => {
    const source = 'src/features/pages/documents/manual/manual.ts';
    const folder = /new URL\('([./]+\/dist\/documents\/)'/.exec(readSource(source).text)?.[1] ?? '';
    for (const path of [source, compiledPath(source)]) {
      expect(resolve('/checkout', dirname(path), folder)).toBe('/checkout/dist/documents');
    }
  });

  it('escapes what is not ASCII, and refuses what would then mean something else', () => {
    expect(escapeToAscii("const a = '\u2026\\\\\u2026';")).toBe("const a = '\\u2026\\\\\\u2026';");
    expect(() => escapeToAscii('/\\\u2026/')).toThrow('the bundle cannot be ASCII');
    expect(() => escapeToAscii('String.raw`\u2026`')).toThrow('the bundle cannot be ASCII');
  });

  it.each(['http', 'node:http'])('requires %s, because an import would load undici', (name) => {
    const plugin = bundle.plugins.find((one) => one.name === 'http-by-require');
    const id = plugin?.resolveId?.(name, '/checkout/src/a.ts') ?? '';
    expect(plugin?.load?.(id)).toBe('module.exports = require("node:http");');
    expect(plugin?.resolveId?.('node:http', id)).toBeUndefined();
    expect(plugin?.resolveId?.('node:https', '/checkout/src/a.ts')).toBeUndefined();
  });

  it.each([
    ['typeorm/driver/mysql/MysqlDriver.js', true],
    ['typeorm/driver/sqlserver/MssqlParameter.js', true],
    ['typeorm/driver/postgres/PostgresDriver.js', false],
    ['typeorm/driver/types/MetadataTableType.js', false],
    ['typeorm/driver/DriverFactory.js', false],
    ['multer/index.js', true],
    ['@peculiar/webcrypto/build/webcrypto.js', true],
  ])('leaves out the unused files of libraries: %s is %s', (path, expected) => {
    const file = resolve(ROOT, 'node_modules', path);
    expect(existsSync(file)).toBe(true);
    expect(isUnused(file)).toBe(expected);
  });

  it.each(['oidc-provider', 'pgpass', '@nestjs/core', 'zod'])(
    'holds other packages: %s',
    (name) => {
      expect(bundle.external(name)).toBe(false);
    },
  );
});
