import { readFileSync } from 'node:fs';
import type { CommandContext } from '../command/command-context.js';
import type { Command } from '../command/command.js';
import { parseArguments } from '../program/arguments.js';
import { CliFailure, usageFailure } from '../program/failure.js';
import { ServerRefusal } from '../server/server-client.js';
import { credentialLines, isFor, readCredential, targetOf } from './credential.js';
import { tableLines } from '../terminal/table.js';
import { dropToken, tokenFor, webUrlOf } from './git-token.js';
import { sign, signatureAddresses } from './signing.js';

const USAGE = 'svc git credential get|store|erase\nsvc git sign -- ARGUMENT...\nsvc git signers';

/** `svc git`: the programs that git runs to get a token and to sign a commit. */
export const command: Command = {
  usage: USAGE,
  help: [
    'credential  reads the description of a credential on standard input; git runs it',
    'sign        renews the SSH certificate and signs with ssh-keygen; git runs it',
    'signers     prints the addresses by which others verify the signatures of your organization',
    '',
    'Connect git with: svc setup git, and svc setup git --sign',
  ],
  async run(args, context) {
    if (args[0] === 'sign') return sign(args.slice(args[1] === '--' ? 2 : 1), context);
    const { positionals } = parseArguments(args, { positionals: 2 }, USAGE);
    const [topic, action] = positionals;
    if (topic === 'signers' && action === undefined) return signers(context);
    if (topic !== 'credential') throw usageFailure('The command is missing or unknown.', USAGE);
    if (action === 'get') return get(context);
    if (action === 'erase') return erase(context);
    // A later version of git may have more actions. A helper must ignore actions that it does not
    // know.
    if (action === undefined) throw usageFailure('The action is missing.', USAGE);
  },
};

async function signers(context: CommandContext): Promise<void> {
  const addresses = await signatureAddresses(context);
  const rows = [
    ['allowed signers', addresses.allowed_signers],
    ['revoked signatures', addresses.revoked_signatures],
  ];
  context.terminal.result(addresses, tableLines(rows));
}

/**
 * Answers git with a token, or with nothing if git asks about another server. After a failure it
 * prints the reason in one line. Unless the status is 404, it also prints `quit=1`, so that git
 * asks neither another helper nor the user.
 */
async function get(context: CommandContext): Promise<number> {
  const { terminal } = context;
  try {
    const request = readCredential(readFileSync(0, 'utf8'));
    const target = targetOf(request.path);
    const isUnreadable = !target && request.path !== '';
    if (isUnreadable || !isFor(await webUrlOf(context), request)) return 0;
    // Without `credential.useHttpPath` git names no repository, and the token would have to be
    // valid for all of them.
    if (!target) throw new CliFailure('git did not name the repository.', 'Run: svc setup git');
    const { token, expires_at: expiresAt } = await tokenFor(context, target);
    terminal.raw(credentialLines(token, expiresAt));
    return 0;
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    terminal.warn(`svc: ${error.line}`);
    // With status 404 the organization has no such repository. The user may have another credential
    // for it, so git may ask further helpers.
    if (!(error instanceof ServerRefusal && error.httpStatus === 404)) terminal.raw('quit=1\n');
    return error.status;
  }
}

/** Removes from the cache a token that GitHub refused. No network is needed. */
function erase(context: CommandContext): void {
  const { path, password } = readCredential(readFileSync(0, 'utf8'));
  const target = targetOf(path);
  if (target) dropToken(context, target, password);
}
