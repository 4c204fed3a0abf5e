import { spawn } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { setPriority } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { env as ownEnvironment } from 'node:process';
import { prepareOutputs } from './outputs.js';

/** The folder of the checkout. */
export const ROOT = resolve(import.meta.dirname, '..');

/** The path of the compiler's program. */
export const COMPILER = join(ROOT, 'node_modules/typescript/bin/tsc');

/** The layout of a Nest project, which the Nest command line and editors read as well. */
const NEST = JSON.parse(readFileSync(join(ROOT, 'nest-cli.json'), 'utf8'));

/**
 * The folders of the packages that are compiled, relative to the checkout. The image lacks the
 * packages that the server does not need.
 */
const PACKAGES = globSync('packages/*/tsconfig.json', { cwd: ROOT }).map(dirname);

/**
 * The configurations of the compiler, relative to the checkout. The configurations of packages come
 * first, because the server needs the outputs of the packages.
 */
const CONFIGURATIONS = [
  ...PACKAGES.map((folder) => `${folder}/tsconfig.json`),
  NEST.compilerOptions.tsConfigPath,
];

/** The folders of each compiled project: its sources, and its outputs. */
export const PROJECTS = [
  ...PACKAGES.map((folder) => projectIn(folder, 'src', [])),
  projectIn('.', NEST.sourceRoot, ['svc.mjs', 'bundle*/**', 'documents/**']),
];

function projectIn(folder, sources, kept) {
  const outputs = join(ROOT, folder, 'dist');
  return {
    sources: join(ROOT, folder, sources),
    outputs,
    memory: join(outputs, '.tsbuildinfo'),
    kept,
  };
}

/** Removes outdated files of the build, and copies the assets that changed. */
export function prepareBuild() {
  PROJECTS.forEach(prepareOutputs);
}

/**
 * Compiles the sources that changed.
 * @throws Error if the compiler found an error, which it has printed
 */
export function compile() {
  // The compiler makes many short-lived objects: with more space it takes a tenth less time.
  const flags = ['--max-semi-space-size=64'];
  return run(COMPILER, ['--build', ...CONFIGURATIONS], { flags });
}

/** The folder of the command's sources. The command is bundled with its packages. */
export const COMMAND_SOURCES = join(ROOT, 'packages/svc/src');

/**
 * Bundles the command, and copies the bundle to the place where the server reads it.
 * @throws Error if the bundler failed
 */
export async function bundleCommand() {
  const folder = join(ROOT, 'packages/svc');
  await run(join(ROOT, 'node_modules/rolldown/bin/cli.mjs'), ['-c'], { cwd: folder });
  mkdirSync(join(ROOT, 'dist'), { recursive: true });
  copyFileSync(join(folder, 'dist/svc.mjs'), join(ROOT, 'dist/svc.mjs'));
}

/**
 * Bundles the server with most of its packages. The new bundle replaces the old one only when it is
 * complete, so that a server that runs meanwhile finds its files.
 *
 * @param {{ folder?: string, without?: string, configuration?: string }} [options] the folder in
 *   `dist`, a folder of sources whose entries are left out, and the configuration of the bundler
 * @throws Error when the bundler failed
 */
export async function bundleServer({
  folder = 'bundle',
  without = '',
  configuration = join(ROOT, 'scripts/server-bundle.js'),
} = {}) {
  const made = join(ROOT, 'dist', `${folder}-new`);
  rmSync(made, { recursive: true, force: true });
  await run(join(ROOT, 'node_modules/rolldown/bin/cli.mjs'), ['-c', configuration], {
    // The compiler runs at the same time and takes longer. The bundler has a lower priority, so
    // that it does not slow down the compiler on a machine with two processors.
    niceness: 10,
    env: {
      ...ownEnvironment,
      RAYON_NUM_THREADS: '1',
      ROLLDOWN_WORKER_THREADS: '1',
      SVC_BUNDLE_FOLDER: `${folder}-new`,
      SVC_BUNDLE_WITHOUT: without,
    },
  });
  removeServerBundle(folder);
  renameSync(made, join(ROOT, 'dist', folder));
}

/** Removes a bundle of the server, because it does not match sources that changed. */
export function removeServerBundle(folder = 'bundle') {
  rmSync(join(ROOT, 'dist', folder), { recursive: true, force: true });
}

/**
 * Runs a program of Node, with its output on standard error, so that a script can print a result on
 * standard output.
 */
function run(program, args, { cwd = ROOT, niceness = 0, env = ownEnvironment, flags = [] } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [...flags, program, ...args], {
      cwd,
      env,
      stdio: ['ignore', 2, 2],
    });
    if (niceness > 0) child.once('spawn', () => lowerPriority(child, niceness));
    child.once('error', fail);
    child.once('close', (status) => {
      if (status === 0) done();
      else fail(new Error(`${program} ended with status ${status}`));
    });
  });
}

/** Lowers the priority of a process. It does not fail if the process has ended already. */
function lowerPriority({ pid }, niceness) {
  try {
    setPriority(pid, niceness);
  } catch {
    // The process ended, or the system has no priorities.
  }
}
