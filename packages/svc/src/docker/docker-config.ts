import { join } from 'node:path';
import { difference } from '../changes/difference.js';
import type { Change } from '../changes/change.js';
import { fromBytes, readTextFile, toBytes, writeTextFile } from '../changes/text-file.js';
import { toolFile, type ToolFile } from '../changes/tool-file.js';
import { parseJson } from '../files/private-folder.js';
import { variable } from '../program/environment.js';
import { DOCKER, HELPER } from './docker-note.js';

/** The member of the configuration of Docker that names a credential helper for each registry. */
const MEMBER = 'credHelpers';

/** The credential helpers in the configuration of Docker, by the hosts of the registries. */
export type Helpers = Readonly<Record<string, string>>;

/** Returns the configuration file of Docker. Its variable names the folder of the file. */
export function dockerConfigFile(home: string): ToolFile {
  const name = 'DOCKER_CONFIG';
  const folder = variable(name);
  const named = folder === undefined ? undefined : join(folder, 'config.json');
  return toolFile(DOCKER, name, { named, usual: join(home, '.docker', 'config.json') });
}

/**
 * Returns the helpers in the configuration of Docker; an empty object if the file does not exist.
 */
export function helpersIn(path: string): Helpers {
  return Object(documentIn(path)?.[MEMBER]) as Helpers;
}

/**
 * Returns the change that makes `svc` the credential helper of exactly the given registries; an
 * empty list if nothing changes. Helpers of other programs stay. The rest of the file is written
 * again as Docker writes it.
 *
 * @param isOwnFile true if the setup made the file, so that it is removed when it is empty
 */
export function helpersChange(
  path: string,
  hosts: readonly string[],
  isOwnFile: boolean,
): Change[] {
  const file = readTextFile(path);
  const before = file.bytes === undefined ? undefined : fromBytes(file.bytes);
  const { [MEMBER]: _helpers, ...rest } = documentIn(path) ?? {};
  const others = Object.entries(helpersIn(path)).filter(([, helper]) => helper !== HELPER);
  const helpers = Object.fromEntries([...others, ...hosts.map((host) => [host, HELPER])]);
  const isUnchanged = hosts.length === 0 && Object.keys(helpersIn(path)).length === others.length;
  const next = {
    ...documentIn(path),
    ...(Object.keys(helpers).length === 0 ? { [MEMBER]: undefined } : { [MEMBER]: helpers }),
  };
  const isEmpty = isOwnFile && Object.keys(helpers).length + Object.keys(rest).length === 0;
  const after = isEmpty
    ? undefined
    : `${JSON.stringify(next, null, indentOf(before))}${endOf(before)}`;
  if (isUnchanged || after === before) return [];
  return [
    {
      description: difference(path, before, after),
      apply: () =>
        writeTextFile(file, {
          bytes: after === undefined ? undefined : toBytes(after),
          withFolder: isEmpty,
        }),
    },
  ];
}

function documentIn(path: string): Record<string, unknown> | undefined {
  const { bytes } = readTextFile(path);
  if (bytes === undefined) return undefined;
  return parseJson(fromBytes(bytes), path) as Record<string, unknown>;
}

/** Returns the indentation of a JSON text. Docker indents with tabs. */
function indentOf(text: string | undefined): string {
  return /^\{\r?\n([ \t]+)/.exec(text ?? '')?.[1] ?? '\t';
}

function endOf(text: string | undefined): string {
  return text?.endsWith('\n') ? '\n' : '';
}
