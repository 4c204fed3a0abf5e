import { variables } from '../program/environment.js';

/** The changes to the environment of a child process. */
export interface EnvironmentChange {
  /** The variables to set. Their values may be secrets. */
  readonly set: Readonly<Record<string, string>>;
  /** The names of the variables to remove. */
  readonly unset: readonly string[];
}

/** The change that sets and removes no variable. */
export const NO_CHANGE: EnvironmentChange = { set: {}, unset: [] };

/** Combines several changes. A variable that one change sets is not removed by another. */
export function combined(...changes: readonly EnvironmentChange[]): EnvironmentChange {
  const set = Object.assign({}, ...changes.map((change) => change.set)) as Record<string, string>;
  const unset = new Set(changes.flatMap((change) => change.unset));
  return { set, unset: [...unset].filter((name) => !Object.hasOwn(set, name)) };
}

/**
 * Returns the environment of a child process: that of this process with a change. Windows ignores
 * the case of the names.
 */
export function childEnvironment(
  { set, unset }: EnvironmentChange,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const nameOf = (name: string) => (platform === 'win32' ? name.toUpperCase() : name);
  const gone = new Set([...unset, ...Object.keys(set)].map(nameOf));
  const kept = Object.entries(variables()).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !gone.has(nameOf(entry[0])),
  );
  return { ...Object.fromEntries(kept), ...set };
}
