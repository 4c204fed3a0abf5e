/**
 * Runs `npm run dev`: builds and starts the server. After each change of a source it writes the
 * changed output and restarts the server at once. Types are checked at the same time, because a
 * check takes longer than a restart. A change of a package is compiled first, with its
 * declarations.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import ts from 'typescript';
import { buildDocuments } from './documents/build-documents.js';
import {
  bundleCommand,
  COMMAND_SOURCES,
  compile,
  COMPILER,
  prepareBuild,
  PROJECTS,
  removeServerBundle,
  ROOT,
} from './projects.js';

/** The milliseconds within which an editor writes all files of one change. */
const ONE_CHANGE = 50;

const SOURCES = join(ROOT, 'src');
const OUTPUTS = join(ROOT, 'dist');

prepareBuild();
buildDocuments();
removeServerBundle(); // so that `npm start` does not run a bundle that is older than its modules
// A failure is ignored here, because the type checker below reports the same errors.
await Promise.all([compile(), bundleCommand()]).catch(() => undefined);

const check = ['--watch', '--preserveWatchOutput', '--noEmit', '-p', 'tsconfig.build.json'];
const checker = spawn(process.execPath, [COMPILER, ...check], {
  cwd: ROOT,
  stdio: ['ignore', 2, 2],
});
const options = compilerOptions();
const changed = new Set();
let timer;
let updates = Promise.resolve();
let server = start();
let isEnding = false;
let isRestarting = false;

for (const folder of [...PROJECTS.map(({ sources }) => sources), COMMAND_SOURCES]) {
  watch(folder, { recursive: true }, (_, path) => {
    if (path === null) return;
    changed.add(join(folder, path));
    clearTimeout(timer);
    timer = setTimeout(() => {
      updates = updates.then(update);
    }, ONE_CHANGE);
  });
}
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    isEnding = true;
    checker.kill();
    afterServer(() => process.exit());
  });
}

/** Writes the outputs of the changed sources, and starts the server with them. */
async function update() {
  const sources = [...changed].filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts'));
  const hasOthers = changed.size > sources.length || sources.some((path) => !existsSync(path));
  const inPackages = [...changed].some((path) => path.startsWith(join(ROOT, 'packages')));
  changed.clear();
  if (hasOthers) prepareBuild();
  for (const path of sources.filter(isOfServer)) transpile(path);
  // Errors are ignored here, because both programs have printed them already.
  if (inPackages) await Promise.allSettled([compile(), bundleCommand()]);
  restart();
}

function isOfServer(path) {
  return path.startsWith(SOURCES + sep) && existsSync(path);
}

/**
 * Writes the output of one source without reading any other source. The option `isolatedModules` of
 * the compiler makes sure that this is possible.
 */
function transpile(path) {
  const { outputText, sourceMapText } = ts.transpileModule(readFileSync(path, 'utf8'), {
    fileName: path,
    compilerOptions: options,
  });
  const output = join(OUTPUTS, relative(SOURCES, path).replace(/\.ts$/, '.js'));
  writeFileSync(output, outputText);
  if (sourceMapText !== undefined) writeFileSync(`${output}.map`, sourceMapText);
}

function compilerOptions() {
  const file = join(ROOT, 'tsconfig.build.json');
  const { config } = ts.readConfigFile(file, (path) => ts.sys.readFile(path));
  const parsed = ts.parseJsonConfigFileContent(config, ts.sys, ROOT).options;
  return { ...parsed, module: ts.ModuleKind.ESNext, incremental: false };
}

function start() {
  return spawn(process.execPath, ['--conditions=unbundled', 'dist/main.js'], {
    cwd: ROOT,
    stdio: 'inherit',
  });
}

function restart() {
  if (isRestarting) return;
  isRestarting = true;
  afterServer(() => {
    isRestarting = false;
    if (!isEnding) server = start();
  });
}

/** Stops the server by a signal, so that it closes its database, and then calls a function. */
function afterServer(act) {
  if (server.exitCode !== null || server.signalCode !== null) {
    act();
    return;
  }
  server.once('close', act);
  // SIGINT, because after SIGTERM the server goes on listening for requests that a load balancer
  // still sends.
  server.kill('SIGINT');
}
