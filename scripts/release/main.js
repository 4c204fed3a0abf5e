/**
 * Runs `npm run release -- OUT`: makes the files of a release from a clean checkout. It needs git,
 * Node with npm, and the package registry; `ssh-keygen` makes the signature.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { arch, platform, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { cleanCommit, exportFiles } from './checkout.js';
import { ARCHITECTURES, installNode, placeNode } from './node-binary.js';
import { makeProductionTree } from './production-tree.js';
import { run, sign } from './programs.js';

const ROOT = resolve(import.meta.dirname, '../..');
const USAGE = `Usage: npm run release -- OUT [--key FILE] [--arch x64,arm64]

  OUT          The folder for the files. It must be empty or absent.
  --key FILE   The private key of ssh-keygen that signs the list of hashes.
  --arch LIST  The architectures: x64, arm64 or both, which is the default.
`;

try {
  release(readArguments());
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

function readArguments() {
  const { values, positionals } = parseArgs({
    options: { key: { type: 'string' }, arch: { type: 'string', default: 'x64,arm64' } },
    allowPositionals: true,
  });
  const architectures = values.arch.split(',');
  const unknown = architectures.find((one) => !Object.hasOwn(ARCHITECTURES, one));
  if (positionals.length !== 1) throw new Error(USAGE);
  if (unknown !== undefined) throw new Error(`--arch: ${unknown} is not known\n${USAGE}`);
  const { key } = values;
  if (key !== undefined && !existsSync(key)) throw new Error(`--key: ${key} does not exist`);
  return { out: resolve(positionals[0]), key: key && resolve(key), architectures };
}

function release({ out, key, architectures }) {
  if (platform() !== 'linux' || !Object.hasOwn(ARCHITECTURES, arch()))
    throw new Error('A release is made on Linux, on x64 or arm64.');
  const { commit, time } = cleanCommit(ROOT);
  if (existsSync(out) && readdirSync(out).length > 0) throw new Error(`${out} is not empty`);
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'svc-release-'));
  try {
    make({ work, out, architectures, commit, time });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  if (key === undefined) say('Not signed. To sign, give --key FILE, a private key of ssh-keygen.');
  else say(`Signed: ${sign(join(out, 'SHA256SUMS'), key)}`);
  for (const line of readFileSync(join(out, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')) say(line);
}

/** Builds in a folder of its own, with the files of the commit alone, and packs what it made. */
function make({ work, out, architectures, commit, time }) {
  const source = join(work, 'source');
  exportFiles(ROOT, source);
  const { version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const lock = JSON.parse(readFileSync(join(source, 'package-lock.json'), 'utf8'));
  say(`Building svc-server ${version} from commit ${commit}`);
  const tree = makeProductionTree(source, work, npm);
  const node = (one) => installNode(lock, one, npm, join(work, 'node', one));
  const nodes = Object.fromEntries(architectures.map((one) => [one, node(one)]));
  const trees = Object.fromEntries(
    architectures.map((one) => {
      const folder = join(work, 'trees', one);
      cpSync(tree, folder, { recursive: true, verbatimSymlinks: true });
      placeNode(nodes[one], folder);
      return [one, folder];
    }),
  );
  say('Packing');
  const packer = nodes[arch()] ?? node(arch());
  const scripts = join(source, 'deploy/debian');
  const options = JSON.stringify({ trees, scripts, out, version, commit, time });
  run(packer.program, [join(import.meta.dirname, 'pack.js'), options], work);
}

/** Runs npm. No package may run a script, and nothing but the registry is asked. */
function npm(folder, args) {
  const safe = args[0] === 'ci' ? ['--ignore-scripts', '--prefer-offline'] : [];
  run('npm', [...args, ...safe, '--loglevel=error', '--no-audit', '--no-fund'], folder);
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
