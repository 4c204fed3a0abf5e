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
  statSync,
} from 'node:fs';
import { arch, platform, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { cleanCommit, exportFiles } from './checkout.js';
import { makeExecutables } from './command/executables.js';
import { ARCHITECTURES, installNode, placeNode } from './node-binary.js';
import { build, makeProductionTree } from './production-tree.js';
import { run, sign } from './programs.js';

const ROOT = resolve(import.meta.dirname, '../..');
const USAGE = `Usage: npm run release -- OUT [--key FILE] [--only server|svc] [--arch x64,arm64] [--url URL]

  OUT          The folder for the files. It must be empty or absent.
  --key FILE   The private key of ssh-keygen that signs the list of hashes.
  --only PART  Makes the files of the server or of svc, the command, alone.
  --arch LIST  The architectures of the server: x64, arm64 or both, which is the default.
  --url URL    Where the files will be, without a slash at its end. It also makes the manifests of
               Homebrew, Scoop and winget, which name that address.
`;
const PARTS = ['server', 'svc'];
/** Matches a URL that needs no escape in any manifest. */
const ADDRESS = /^https:\/\/[\w.~-]+(?::\d+)?(?:\/[\w.~-]+)*$/;

try {
  release(readArguments());
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}

function readArguments() {
  const { values, positionals } = parseArgs({
    options: {
      key: { type: 'string' },
      only: { type: 'string' },
      arch: { type: 'string', default: 'x64,arm64' },
      url: { type: 'string' },
    },
    allowPositionals: true,
  });
  const { key, only, url, arch: list } = values;
  const architectures = list.split(',');
  const unknown = architectures.find((one) => !Object.hasOwn(ARCHITECTURES, one));
  if (positionals.length !== 1) throw new Error(USAGE);
  if (unknown !== undefined) throw new Error(`--arch: ${unknown} is not known\n${USAGE}`);
  if (only !== undefined && !PARTS.includes(only)) throw new Error(`--only: ${only}?\n${USAGE}`);
  if (url !== undefined && !ADDRESS.test(url))
    throw new Error(`--url: ${url} is no https:// address of letters, digits, dots and dashes`);
  if (key !== undefined && !existsSync(key)) throw new Error(`--key: ${key} does not exist`);
  const parts = only === undefined ? PARTS : [only];
  // The options on which the files depend. The provenance lists them, so that a second build can
  // use the same options.
  const parameters = {
    ...(parts.includes('server') && { arch: list }),
    ...(only !== undefined && { only }),
    ...(parts.includes('svc') && url !== undefined && { url }),
  };
  return {
    out: resolve(positionals[0]),
    key: key && resolve(key),
    parts,
    architectures,
    parameters,
  };
}

function release({ out, key, ...wanted }) {
  if (platform() !== 'linux' || !Object.hasOwn(ARCHITECTURES, arch()))
    throw new Error('A release is made on Linux, on x64 or arm64.');
  const { commit, time } = cleanCommit(ROOT);
  if (existsSync(out) && readdirSync(out).length > 0) throw new Error(`${out} is not empty`);
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'svc-release-'));
  try {
    make({ work, out, commit, time, ...wanted });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  if (key === undefined) say('Not signed. To sign, give --key FILE, a private key of ssh-keygen.');
  else say(`Signed: ${sign(join(out, 'SHA256SUMS'), key)}`);
  for (const line of readFileSync(join(out, 'SHA256SUMS'), 'utf8').trimEnd().split('\n')) {
    const megabytes = statSync(join(out, line.slice(66))).size / 1e6;
    say(`${line}  ${megabytes.toFixed(1)} MB`);
  }
}

/** Builds in a folder of its own, with the files of the commit alone, and packs what it made. */
function make({ work, out, parts, architectures, parameters, commit, time }) {
  const source = join(work, 'source');
  exportFiles(ROOT, source);
  const { version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'));
  const lockFile = join(source, 'package-lock.json');
  const lock = JSON.parse(readFileSync(lockFile, 'utf8'));
  say(`Building svc-server ${version} from commit ${commit}`);
  const builder = build(source, work, npm);
  const node = (one) => installNode(lock, one, npm, join(work, 'node', one));
  const nodes = Object.fromEntries(
    [...new Set([...architectures, arch()])].map((one) => [one, node(one)]),
  );
  const isWanted = (part) => parts.includes(part);
  const trees = isWanted('server') ? treesOf({ source, builder, work, architectures, nodes }) : {};
  const command = isWanted('svc') ? commandFiles({ source, builder, work }) : undefined;
  say('Packing');
  const scripts = join(source, 'deploy/debian');
  const made = { lockFile, trees, scripts, command, url: parameters.url, out };
  const options = JSON.stringify({ ...made, version, commit, time, parameters });
  run(nodes[arch()].program, [join(import.meta.dirname, 'pack.js'), options], work);
}

/** Makes the folder of the service for each architecture. */
function treesOf({ source, builder, work, architectures, nodes }) {
  const tree = makeProductionTree(source, builder, work, npm);
  return Object.fromEntries(
    architectures.map((one) => {
      const folder = join(work, 'trees', one);
      cpSync(tree, folder, { recursive: true, verbatimSymlinks: true });
      placeNode(nodes[one], folder);
      return [one, folder];
    }),
  );
}

/** Makes the executables of the command. */
function commandFiles({ source, builder, work }) {
  say('Making the executables of svc');
  const script = join(builder, 'dist/svc.mjs');
  const made = makeExecutables({ script, work: join(work, 'command'), npm });
  const licenses = [join(source, 'LICENSE'), made.license];
  return { script, executables: made.executables, licenses };
}

/**
 * Runs npm. `npm ci` runs no scripts of packages, uses the local cache if it can, and requests no
 * audit.
 */
function npm(folder, args) {
  const safe = args[0] === 'ci' ? ['--ignore-scripts', '--prefer-offline'] : [];
  run('npm', [...args, ...safe, '--loglevel=error', '--no-audit', '--no-fund'], folder);
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
