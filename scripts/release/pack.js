/**
 * Packs the files of a release. `main.js` runs it by the Node of the release, because each version
 * of Node brings its own zlib, which compresses in its own way.
 *
 * Its argument is a JSON document. `trees` has the folder of the service for each architecture, and
 * is empty for a release without the service. `command` has the files of the command, and is absent
 * for a release without the command. `parameters` has the options that a second release needs to
 * make the same files. The other members are `lockFile`, `scripts`, `url`, `out`, `version`,
 * `commit` and `time`.
 */
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { packCommand } from './command/pack-command.js';
import { runtimePackages } from './command/runtimes.js';
import { debianVersion, writeDeb } from './deb.js';
import { ARCHITECTURES, nodePackage } from './node-binary.js';
import { provenanceOf } from './provenance.js';
import { sbomOf } from './sbom.js';
import { entriesOf, writeTarGz } from './tar.js';

const { lockFile, trees, scripts, command, url, out, version, commit, time, parameters } =
  JSON.parse(process.argv[2]);
const architectures = Object.keys(trees);
const lock = JSON.parse(readFileSync(lockFile, 'utf8'));
const named = `svc-server-${version}`;
const files = [];

for (const [architecture, tree] of Object.entries(trees)) {
  const tarball = `${named}-linux-${architecture}.tar.gz`;
  const entries = [
    { path: named, type: 'folder' },
    ...entriesOf(tree, named, new Set(['bin/node'])),
  ];
  await writeTarGz(join(out, tarball), entries, time);
  const debian = ARCHITECTURES[architecture];
  const deb = `svc-server_${debianVersion(version)}_${debian}.deb`;
  await writeDeb({ file: join(out, deb), tree, scripts, version, architecture: debian, time });
  files.push(tarball, deb);
}

if (command !== undefined)
  files.push(...(await packCommand({ command, out, version, time, url, digestOf })));

const sbom = `${named}.cdx.json`;
const nodes = architectures.map((one) => nodePackage(lock, one));
const runtimes = command === undefined ? [] : runtimePackages();
const tree = trees[architectures[0]];
writeJson(sbom, sbomOf({ tree, lock, nodes, runtimes, commit, time }));
files.push(sbom);

const subjects = [];
for (const name of files) subjects.push({ name, sha256: await digestOf(join(out, name)) });
const lockDigest = await digestOf(lockFile);
const provenance = `${named}.intoto.json`;
writeJson(
  provenance,
  provenanceOf({
    subjects,
    parameters: { version, ...parameters },
    commit,
    lockDigest,
    packages: [...nodes, ...runtimes],
  }),
);
subjects.push({ name: provenance, sha256: await digestOf(join(out, provenance)) });
const lines = subjects.map(({ name, sha256 }) => `${sha256}  ${name}\n`);
writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));

function writeJson(name, document) {
  writeFileSync(join(out, name), `${JSON.stringify(document, null, 2)}\n`);
}

async function digestOf(path) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
