import { execFileSync } from 'node:child_process';
import { globSync, realpathSync } from 'node:fs';
import { join } from 'node:path';

/** The major versions of Node on which the `svc` command runs. */
export const NODE_VERSIONS = [20, 22, 24] as const;

/**
 * The paths at which a program of Node may be. They are in the folders of `.ci/run`
 * (SVC_TEST_NODES) and of the project, on the PATH, and in the folder of nvm.
 */
const PATTERNS = [
  `${process.env['SVC_TEST_NODES'] ?? '/nonexistent'}/*/node_modules/node-*/bin/node`,
  join(import.meta.dirname, '../../node_modules/node-*/bin/node'),
  ...(process.env['PATH'] ?? '').split(':').map((folder) => join(folder, 'node')),
  join(process.env['HOME'] ?? '/', '.nvm/versions/node/*/bin/node'),
];

let found: ReadonlyMap<number, string> | undefined;

/** Returns the path of a Node with this major version; undefined if the machine has none. */
export function findNode(major: number): string | undefined {
  found ??= new Map([[Number(process.versions.node.split('.')[0]), process.execPath], ...search()]);
  return found.get(major);
}

function search(): [number, string][] {
  const programs = new Set(globSync(PATTERNS).map((path) => realpathSync(path)));
  return [...programs].flatMap((program): [number, string][] => {
    try {
      const version = execFileSync(program, ['--version'], { encoding: 'utf8' });
      return [[Number(/^v(\d+)/.exec(version)?.[1]), program]];
    } catch {
      // the program cannot run here, for example because it is for another kind of machine
      return [];
    }
  });
}
