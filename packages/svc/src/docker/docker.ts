import { readFileSync } from 'node:fs';
import { defaultChoices } from '../aws/session/role-choices.js';
import { roleCredentials } from '../aws/session/role-cache.js';
import { CommandContext } from '../command/command-context.js';
import type { Command } from '../command/command.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';
import { version } from '../program/version.js';
import { dockerNote } from './docker-note.js';
import { registryLogin } from './registry-token.js';
import { roleOf } from './registry-role.js';
import { registryOf } from './registry.js';

const USAGE = 'svc docker credential get|store|erase|list|version';

/**
 * The text by which a helper says that it has no credential. Docker compares the text, so it must
 * be exactly this.
 */
const NOT_FOUND = 'credentials not found in native keychain';
/** The text by which a helper says that it was asked for no server. */
const NO_SERVER = 'no credentials server URL';

/** `svc docker`: the credential helper, which Docker runs by the name `docker-credential-svc`. */
export const command: Command = {
  usage: USAGE,
  help: [
    'Docker runs it: it reads the registry on standard input, and prints a token of ECR.',
    'Connect Docker with: svc setup docker',
  ],
  async run(args, context) {
    const [topic, action] = parseArguments(args, { positionals: 2 }, USAGE).positionals;
    if (topic !== 'credential' || action === undefined) {
      throw usageFailure('The command is missing or unknown.', USAGE);
    }
    return answer(action, context);
  },
};

/**
 * Answers Docker on standard output. If there is no credential, Docker expects the reason there
 * too.
 */
async function answer(action: string, context: CommandContext): Promise<number> {
  const { terminal } = context;
  try {
    terminal.raw(await answerTo(action, context));
    return 0;
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    terminal.raw(`${error.line}\n`);
    return STATUS.failed;
  }
}

async function answerTo(action: string, context: CommandContext): Promise<string> {
  if (action === 'get') return get(context);
  if (action === 'list') return `${JSON.stringify(hostsOf(context))}\n`;
  if (action === 'version') return `docker-credential-svc ${version()}\n`;
  if (action === 'erase') return ''; // no token of ECR is stored
  if (action === 'store') {
    throw new CliFailure('svc keeps no password: it gets a token of ECR at each use.', '');
  }
  throw new CliFailure(`Unknown credential action \`${action}\``, '');
}

/** Returns the registries that `svc setup docker` noted, each with the user name `AWS`. */
function hostsOf(context: CommandContext): Record<string, string> {
  const hosts = Object.keys(dockerNote(context).registries);
  return Object.fromEntries(hosts.map((host) => [host, 'AWS']));
}

/**
 * Returns the answer with a new token for the registry on standard input.
 * @throws CliFailure with the text that Docker expects for another server
 */
async function get(context: CommandContext): Promise<string> {
  const serverUrl = readFileSync(0, 'utf8').trim();
  if (serverUrl === '') throw new CliFailure(NO_SERVER, '');
  const registry = registryOf(serverUrl);
  if (!registry) throw new CliFailure(NOT_FOUND, '');
  const noted = dockerNote(context).registries[registry.host];
  const own = noted ? contextOf(context, noted.server) : context;
  const role = await roleOf(own, registry, noted);
  const credentials = await roleCredentials(own, defaultChoices(role));
  const { username, secret } = await registryLogin(registry, credentials, own.terminal);
  return `${JSON.stringify({ ServerURL: serverUrl, Username: username, Secret: secret })}\n`;
}

function contextOf({ terminal, commands }: CommandContext, server: string): CommandContext {
  return new CommandContext(terminal, server, commands, true);
}
