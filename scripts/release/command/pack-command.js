import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  createReadStream,
  createWriteStream,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { debianVersion, textFile, writePackage } from '../deb.js';
import { manifestsOf } from './manifests.js';
import { rpmVersion, writeRpm } from './rpm.js';
import { PLATFORMS } from './runtimes.js';

const LICENSE = 'Apache-2.0 AND MIT';
const SUMMARY = 'ssh, aws, git and kubectl after one touch of a security key';
const DESCRIPTION = `The command logs in to an svc server with a FIDO2 security key, and gives ssh, aws,
git and kubectl the short-lived credentials of that login.`;

/**
 * The shared libraries that the executables load, in the notation of RPM. The field `Depends` below
 * has Debian's names for the same libraries.
 */
const LIBRARIES = [
  'libatomic.so.1()(64bit)',
  'libc.so.6(GLIBC_2.28)(64bit)',
  'libgcc_s.so.1()(64bit)',
  'libm.so.6()(64bit)',
  'libstdc++.so.6(GLIBCXX_3.4.21)(64bit)',
];

const CONTROL = `Package: svc
Version: @VERSION@
Architecture: @ARCHITECTURE@
Maintainer: The svc-server project <maintainers@svc-server.invalid>
Installed-Size: @SIZE@
Depends: libatomic1, libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 8)
Recommends: openssh-client
Suggests: awscli, git, fido2-tools
Section: net
Priority: optional
Description: ${SUMMARY}
${DESCRIPTION.replaceAll(/^/gm, ' ')}
 .
 The package brings its own Node.js.
`;

/**
 * The files in which bash, zsh and fish look for completions: first those of Debian, then those of
 * Fedora.
 */
const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/svc',
  zsh: 'usr/share/zsh/vendor-completions/_svc',
  fish: 'usr/share/fish/vendor_completions.d/svc.fish',
};
const COMPLETIONS_OF_RPM = { ...COMPLETIONS, zsh: 'usr/share/zsh/site-functions/_svc' };

/**
 * Writes the files of the command: the script, the executables, and the packages with the
 * executables for Linux. If the URL of the files is known (`url`), it also writes the manifests of
 * Homebrew, Scoop and winget.
 *
 * @param {{ command: { script: string, executables: Record<string, string>, licenses: string[] },
 *   out: string, version: string, time: number, url?: string, digestOf: (path: string) =>
 *   Promise<string> }} options the paths of the bundle, of the executables by their platforms and
 *   of the licenses, and the function that returns a SHA-256
 * @returns {Promise<string[]>} the names of the files
 */
export async function packCommand({ command, out, version, time, url, digestOf }) {
  const script = `svc-${version}.mjs`;
  copyFileSync(command.script, join(out, script));
  const named = Object.entries(command.executables).map(([platform, from]) => {
    const isWindows = platform.startsWith('win-');
    return { platform, from, name: `svc-${version}-${platform}${isWindows ? '.exe' : '.gz'}` };
  });
  // The files are written at the same time, because compression takes a while and has threads of
  // its own.
  await Promise.all(
    named.map(async ({ from, name }) => {
      if (name.endsWith('.exe')) copyFileSync(from, join(out, name));
      else await compress(from, join(out, name));
    }),
  );
  const content = contentOf(command);
  const packages = await Promise.all(
    named
      .filter(({ platform }) => PLATFORMS[platform].debian !== undefined)
      .map((one) => writePackages({ ...one, content, out, version, time })),
  );
  const names = [script, ...named.map(({ name }) => name), ...packages.flat()];
  if (url === undefined) return names;
  const files = {};
  for (const { platform, name } of named)
    files[platform] = { name, sha256: await digestOf(join(out, name)) };
  const manifests = manifestsOf({ version, url, files, summary: SUMMARY });
  for (const [name, text] of Object.entries(manifests)) writeFileSync(join(out, name), text);
  return [...names, ...Object.keys(manifests)];
}

/**
 * Compresses a file by gzip. The result has neither a name nor a time in its header, so that equal
 * files become equal archives.
 */
async function compress(from, to) {
  await pipeline(createReadStream(from), createGzip({ level: 9 }), createWriteStream(to));
}

async function writePackages({ platform, from, content, out, version, time }) {
  const { debian, rpm } = PLATFORMS[platform];
  const deb = `svc_${debianVersion(version)}_${debian}.deb`;
  await writePackage({
    file: join(out, deb),
    entries: withFolders(filesOf(content, from, COMPLETIONS)),
    control: CONTROL,
    version,
    architecture: debian,
    time,
  });
  const about = {
    name: 'svc',
    version: rpmVersion(version),
    architecture: rpm,
    summary: SUMMARY,
    description: DESCRIPTION,
    license: LICENSE,
    requires: LIBRARIES,
  };
  const name = `svc-${about.version}-1.${rpm}.rpm`;
  const entries = filesOf(content, from, COMPLETIONS_OF_RPM);
  await writeRpm({ file: join(out, name), entries, about, time });
  return [deb, name];
}

/**
 * Returns the files that the packages of all architectures have in common: the completions, and the
 * licenses.
 */
function contentOf({ script, licenses }) {
  const [own, ofNode] = licenses.map((path) => readFileSync(path, 'utf8'));
  const completionOf = (shell) =>
    execFileSync(process.execPath, [script, 'completions', shell], { encoding: 'utf8' });
  return {
    completions: Object.fromEntries(
      Object.keys(COMPLETIONS).map((shell) => [shell, completionOf(shell)]),
    ),
    copyright: `${own}\n\nNode.js, in /usr/bin/svc:\n\n${ofNode}`,
  };
}

function filesOf({ completions, copyright }, executable, places) {
  return [
    { path: './usr/bin/svc', type: 'file', mode: 0o755, from: executable },
    ...Object.entries(places).map(([shell, path]) => textFile(path, completions[shell])),
    textFile('usr/share/doc/svc/copyright', copyright),
  ];
}

/** Returns the files with the folders above them, each folder before its content. */
function withFolders(files) {
  const folders = new Set(['.']);
  for (const { path } of files) {
    const parts = path.split('/').slice(0, -1);
    parts.forEach((_, n) => folders.add(parts.slice(0, n + 1).join('/')));
  }
  const entries = [...[...folders].map((path) => ({ path, type: 'folder' })), ...files];
  return entries.toSorted((one, other) => (one.path < other.path ? -1 : 1));
}
