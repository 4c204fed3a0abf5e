/** The name of this way of building, which docs/operations/verify-a-release.md describes. */
const BUILD_TYPE = 'urn:svc-server:build:npm-run-release:2';
/**
 * The builder is this command, no matter on which machine. The signature of the list of hashes
 * shows who ran it.
 */
const BUILDER = 'urn:svc-server:builder:npm-run-release';

/**
 * States from what the files of the release were made: an in-toto statement with the predicate of
 * SLSA 1. It has no time and no name of a machine, so that a second build makes the same bytes.
 *
 * @param {{ subjects: { name: string, sha256: string }[], parameters: Record<string, string>,
 *   commit: string, lockDigest: string, packages: { name: string, entry: object }[] }} options the
 *   files, the version and the options of the command, the commit, the hash of the lock file, and
 *   the packages with Node
 */
export function provenanceOf({ subjects, parameters, commit, lockDigest, packages }) {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: subjects.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: parameters,
        resolvedDependencies: [
          { name: 'svc-server', digest: { gitCommit: commit } },
          { name: 'package-lock.json', digest: { sha256: lockDigest } },
          ...packages.map(({ name, entry }) => ({
            uri: `pkg:npm/${name}@${entry.version}`,
            digest: { sha512: Buffer.from(entry.integrity.slice(7), 'base64').toString('hex') },
          })),
        ],
      },
      runDetails: { builder: { id: BUILDER } },
    },
  };
}
