import { execFileSync } from 'node:child_process';
import { findProgram } from './programs.js';

/**
 * The path at which `.ci/run` unpacks Debian's kubectl 1.20. It is not on the PATH, which may have
 * a newer one.
 */
const DEBIAN = '/opt/svc-test/kubectl-1.20/usr/bin/kubectl';

/** A `kubectl` program on this machine, and its minor version. */
export interface Kubectl {
  readonly path: string;
  readonly minor: number;
}

/**
 * Returns Debian's kubectl 1.20, which knows only the version v1beta1 of the plugin API. Returns
 * undefined if this machine does not have it.
 */
export function oldKubectl(): Kubectl | undefined {
  return kubectls().find(({ minor }) => minor < 22);
}

/** Returns a kubectl that knows v1 of the plugin interface; undefined if this machine has none. */
export function newKubectl(): Kubectl | undefined {
  return kubectls().find(({ minor }) => minor >= 22);
}

function kubectls(): Kubectl[] {
  const paths = [DEBIAN, findProgram('kubectl')].filter((path) => path !== undefined);
  return paths.flatMap((path) => {
    try {
      const args = ['version', '--client', '-o', 'json'];
      const text = execFileSync(path, args, {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const { clientVersion } = JSON.parse(text) as { clientVersion: { minor: string } };
      return [{ path, minor: Number.parseInt(clientVersion.minor, 10) }];
    } catch {
      return [];
    }
  });
}
