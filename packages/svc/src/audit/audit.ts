import type { Command } from '../command/command.js';
import { usageFailure } from '../program/failure.js';

const USAGE = [
  'svc audit verify EXPORT --checkpoint FILE [--key FILE] [--retention-days N] [--from EPOCH.LEAF]',
  'svc audit watch FILE [--key FILE]',
].join('\n');

/**
 * `svc audit`: checks the seal of the audit log, which is a Merkle tree of its events with signed
 * checkpoints.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'verify reads a sealed export, "-" for standard input, and asks no server. Exit status 0: the',
    'rows are whole and unaltered. Exit status 1: it names each row that was changed, removed,',
    'inserted or moved.',
    '--from says that the export was asked to begin after that leaf (`after` of the request): only',
    'what is before it is not missed.',
    'watch adds the new checkpoints of the server to FILE, and checks that each one extends those',
    'before. It needs svc login --admin. Exit status 1: a checkpoint does not extend an earlier one.',
    '--key names a file with the public key of the seal, so that signatures are checked.',
  ],
  async run(args, context) {
    const [act, ...rest] = args;
    if (act === 'verify')
      return (await import('./verify.js')).verify(rest, context.terminal, USAGE);
    if (act === 'watch') return (await import('./watch.js')).watch(rest, context, USAGE);
    throw usageFailure(act === undefined ? 'verify or watch?' : `${act} is not known.`, USAGE);
  },
};
