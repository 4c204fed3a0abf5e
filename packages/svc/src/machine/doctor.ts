import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, STATUS } from '../program/failure.js';
import {
  checkFiles,
  checkLogin,
  checkNode,
  checkPath,
  checkServer,
  checkToken,
  checkTools,
  type Finding,
} from './checks.js';

const USAGE = 'svc doctor';

const SIGNS = { ok: 'ok      ', note: 'note    ', problem: 'PROBLEM ' } as const;

/** `svc doctor`: checks this machine, the server and the login, and says what to do. */
export const command: Command = {
  usage: USAGE,
  help: [`Exit status ${STATUS.failed} means that it found a problem.`],
  async run(args, context) {
    parseArguments(args, {}, USAGE);
    const findings = [
      checkNode(),
      checkPath(),
      ...(await serverFindings(context)),
      ...checkTools(context),
    ];
    const width = Math.max(...findings.map(({ name }) => name.length));
    const lines = findings.flatMap(({ name, state, text, what_to_do: whatToDo }) => [
      `${SIGNS[state]} ${name.padEnd(width)}  ${text}`,
      ...(whatToDo === undefined ? [] : [`${' '.repeat(width + 11)}${whatToDo}`]),
    ]);
    context.terminal.result({ findings }, lines);
    return findings.some(({ state }) => state === 'problem') ? STATUS.failed : 0;
  },
};

async function serverFindings(context: CommandContext): Promise<Finding[]> {
  try {
    context.server();
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    const { message, whatToDo } = error;
    return [{ name: 'server', state: 'problem', text: message, what_to_do: whatToDo }];
  }
  const server = await checkServer(context);
  const login = checkLogin(context);
  const canAsk = login.state === 'ok' && server.every(({ state }) => state === 'ok');
  return [...server, login, ...(canAsk ? [await checkToken(context)] : []), checkFiles(context)];
}
