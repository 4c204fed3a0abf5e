import { isatty } from 'node:tty';
import type { Command } from '../command/command.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';
import { given, GIVEN_HELP, GIVEN_OPTIONS } from './given.js';
import { shellLines, SHELLS, usualShell } from './shell-lines.js';

const USAGE = `svc env [--aws ROLE] [--github OWNER[/REPO]] [--kube CLUSTER] [--region REGION] [--duration SECONDS] [--read-only] [--shell ${SHELLS.join('|')}] [--force]`;

/**
 * `svc env`: prints tokens for AWS, GitHub and a cluster as lines that set variables of a shell.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'bash, zsh:   eval "$(svc env)"',
    'fish:        svc env --shell fish | source',
    'PowerShell:  svc env --shell powershell | Out-String | Invoke-Expression',
    'Every program of this shell then reads the tokens. svc exec gives them to one program alone.',
    '',
    ...GIVEN_HELP,
    '',
    '--shell NAME           the shell that reads the lines; that of $SHELL by default',
    '--force                prints the tokens on a terminal, too',
  ],
  async run(args, context) {
    const options = parseArguments(
      args,
      { flags: [...GIVEN_OPTIONS.flags, 'force'], values: [...GIVEN_OPTIONS.values, 'shell'] },
      USAGE,
    );
    const name = options.value('shell') ?? usualShell();
    const shell = SHELLS.find((one) => one === name);
    if (!shell) throw usageFailure(`--shell must be one of ${SHELLS.join(', ')}.`, USAGE);
    if (isatty(1) && !options.has('force')) {
      const whatToDo = 'Run: eval "$(svc env)", or svc exec -- PROGRAM. --force prints them.';
      throw new CliFailure('The lines have secrets, and this is a screen.', whatToDo, STATUS.usage);
    }
    const { change } = await given(context, options, USAGE, (of) => `exec/${of}.json`);
    context.terminal.result(change, shellLines(shell, change));
  },
};
