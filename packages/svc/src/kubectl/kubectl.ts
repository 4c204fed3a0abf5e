import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import { parseArguments } from '../program/arguments.js';
import { variable } from '../program/environment.js';
import { CliFailure, usageFailure } from '../program/failure.js';
import { clusterToken } from './cluster-token.js';
import { apiVersionOf, execCredential } from './exec-credential.js';

const USAGE = 'svc kubectl token --resource URI';

/**
 * `svc kubectl`: the credential plugin that `kubectl` runs before a request. It asks nothing and
 * reads no input.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'Prints a token for a cluster as an ExecCredential; kubectl runs it before a request.',
    'URI is the resource under which an admin registered the cluster.',
    '',
    'Connect kubectl with: svc setup kubectl --cluster NAME --resource URI',
  ],
  async run(args, context) {
    const options = parseArguments(args, { values: ['resource'], positionals: 1 }, USAGE);
    const [action] = options.positionals;
    if (action !== 'token') throw usageFailure('The command is missing or unknown.', USAGE);
    const resource = options.value('resource');
    if (!resource) throw usageFailure('--resource is missing.', USAGE);
    return inOneLine(context, async () => {
      const apiVersion = apiVersionOf(variable('KUBERNETES_EXEC_INFO'));
      context.terminal.raw(execCredential(apiVersion, await clusterToken(context, resource)));
    });
  },
};

/**
 * Runs a function for `kubectl`. A failure is printed as one line on standard error, because
 * `kubectl` adds lines of its own.
 */
async function inOneLine(
  { terminal }: CommandContext,
  act: () => Promise<void>,
): Promise<number | void> {
  try {
    await act();
  } catch (error) {
    if (!(error instanceof CliFailure) || terminal.isJson) throw error;
    terminal.warn(`svc: ${error.line}`);
    return error.status;
  }
}
