import { readFileSync } from 'node:fs';

const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));

/**
 * The public keys of the maintainers, by which `svc update` verifies the signed list of a release.
 */
const releaseKeys = readFileSync(new URL('release-keys', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line.trim() !== '' && !line.startsWith('#'));

/**
 * Loads a module of Node when the file that imports it is first needed, and not at the start of the
 * command. So a command loads only what it uses: `svc version` loads no module of the network.
 */
const lazyBuiltins = {
  name: 'lazy-builtins',
  resolveId: (id) =>
    id.startsWith('node:') ? { id: `\0${id}`, moduleSideEffects: false } : undefined,
  load: (id) =>
    id.startsWith('\0node:')
      ? { code: `module.exports = svcBuiltin(${JSON.stringify(id.slice(1))});`, moduleType: 'js' }
      : undefined,
};

/*
 * The bundle has no `import` and no `export`, so that Node reads it as an ES module under the name
 * svc.mjs, and as CommonJS under the name svc. So it also runs without an extension, on every Node
 * 20.
 */
const banner = `#!/usr/bin/env node
// svc ${version}, Apache-2.0. One file without dependencies for Node 20 and newer.
var svcBuiltin = typeof require === 'function' ? require : process.getBuiltinModule;`;

/** The bundle of the `svc` command: one file, dist/svc.mjs. */
export default {
  input: 'src/main.ts',
  platform: 'node',
  plugins: [lazyBuiltins],
  resolve: { conditionNames: ['source', 'import', 'node'] },
  logLevel: 'warn',
  transform: {
    target: 'es2022',
    define: {
      SVC_VERSION: JSON.stringify(version),
      SVC_RELEASE_KEYS: JSON.stringify(releaseKeys),
    },
  },
  output: {
    file: 'dist/svc.mjs',
    format: 'iife',
    codeSplitting: false,
    banner,
    comments: false,
  },
};
