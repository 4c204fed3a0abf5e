import { runChild, splitAtProgram } from '../child/child.js';
import type { Command } from '../command/command.js';
import { parseArguments } from '../program/arguments.js';
import { randomId } from '../program/clock.js';
import { given, GIVEN_HELP, GIVEN_OPTIONS } from './given.js';

const USAGE =
  'svc exec [--aws ROLE] [--github OWNER[/REPO]] [--kube CLUSTER] [--region REGION] [--duration SECONDS] [--read-only] -- PROGRAM';

/** `svc exec`: runs a program with tokens for AWS, GitHub and a cluster in its environment. */
export const command: Command = {
  usage: USAGE,
  help: [
    'No shell runs, and the exit status is that of the program: 128 and the signal if a signal ended',
    'it, 127 if it is missing, 126 if it cannot run.',
    '',
    ...GIVEN_HELP,
  ],
  async run(args, context) {
    const { own, program } = splitAtProgram(args, USAGE);
    const options = parseArguments(own, GIVEN_OPTIONS, USAGE);
    const { change, file } = await given(context, options, USAGE, () => `exec/${randomId()}.json`);
    try {
      return await runChild(program, change, context.terminal);
    } finally {
      if (file !== undefined) context.folder().remove(file);
    }
  },
};
