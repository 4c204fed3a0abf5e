import type { CommandContext } from '../command/command-context.js';
import { changeConfig, setupNote as noteOf } from '../files/config-file.js';
import { isDeepStrictEqual } from 'node:util';
import type { Change } from './change.js';

/**
 * Returns what a part of `svc setup` recorded in `config.json`; undefined before the first setup.
 */
export function setupNote(context: CommandContext, name: string): object | undefined {
  return noteOf(context.config(), name);
}

/**
 * Returns the change that records the state of a part of `svc setup` in `config.json`. The list is
 * empty if the state is the same.
 *
 * @param note the new state; undefined removes the record
 */
export function noteChange(
  context: CommandContext,
  name: string,
  note: object | undefined,
): Change[] {
  const before = setupNote(context, name);
  if (isDeepStrictEqual(before, note)) return [];
  const folder = context.places.config;
  return [
    {
      description: [
        `${folder.file('config.json')}:`,
        ...(before === undefined ? [] : [`-"${name}": ${JSON.stringify(before)}`]),
        ...(note === undefined ? [] : [`+"${name}": ${JSON.stringify(note)}`]),
      ],
      apply: () =>
        changeConfig(folder, ({ setup, ...config }) => {
          const { [name]: _old, ...others } = setup ?? {};
          const next = { ...others, ...(note === undefined ? {} : { [name]: note }) };
          return Object.keys(next).length === 0 ? config : { ...config, setup: next };
        }),
    },
  ];
}
