import type { ArgumentNames } from '@svc/arguments';
import { parseArguments, type ParsedArguments } from '../../program/arguments.js';
import { usageFailure } from '../../program/failure.js';
import type { AdminClient } from './admin-client.js';

/** An act of an admin, such as `svc admin members show`. */
export interface Act {
  /** The names of the arguments that must be there, in order, such as `MEMBER`. */
  readonly takes?: readonly string[];
  /** The options and further arguments, as the usage shows them, such as `[--yes]`. */
  readonly form?: string;
  readonly names?: ArgumentNames;
  run(admin: AdminClient, options: ParsedArguments): Promise<void>;
}

/**
 * The acts on one kind of things, such as members, by the word that the user types for each.
 * Without a word, the first act runs.
 */
export type Topic = ReadonlyMap<string, Act>;

/** Returns the usage of an act: the words of the command, its arguments and its options. */
export function usageOf(topic: string, word: string, { takes = [], form = '' }: Act): string {
  return ['svc admin', topic, word, ...takes, form].filter((part) => part !== '').join(' ');
}

/**
 * Runs the act that the arguments name.
 * @throws CliFailure with status 2 for an unknown act, or for arguments that do not fit
 */
export async function runTopic(
  name: string,
  topic: Topic,
  args: readonly string[],
  admin: AdminClient,
): Promise<void> {
  const { word, act, rest } = chosen(name, topic, args);
  const usage = usageOf(name, word, act);
  const { takes = [], names = {} } = act;
  const positionals = Math.max(takes.length, names.positionals ?? 0);
  const options = parseArguments(rest, { ...names, positionals, refusesDashes: true }, usage);
  const missing = takes[options.positionals.length];
  if (missing !== undefined) throw usageFailure(`The ${missing} is missing.`, usage);
  await act.run(admin, options);
}

function chosen(name: string, topic: Topic, args: readonly string[]) {
  const [first, ...others] = args;
  const named = first === undefined ? undefined : topic.get(first);
  if (first !== undefined && named) return { word: first, act: named, rest: others };
  const [usual] = topic;
  if (usual && (first === undefined || first.startsWith('-'))) {
    return { word: usual[0], act: usual[1], rest: args };
  }
  const usages = [...topic].map(([word, act]) => usageOf(name, word, act));
  throw usageFailure(`svc admin ${name} does not know "${first}".`, usages.join('\n'));
}
