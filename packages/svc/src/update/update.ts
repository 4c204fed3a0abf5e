import type { Command } from '../command/command.js';
import type { CommandContext } from '../command/command-context.js';
import { parseArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';
import { version } from '../program/version.js';
import { installedProgram, managerOf, previousPath } from './installed-program.js';
import { isNewer, readReleaseList, releaseKeys, type ReleaseList } from './release-list.js';
import { namedSource, readSmall, serverSource, type ReleaseSource } from './release-source.js';
import { replaceProgram, restorePrevious } from './replacement.js';

const USAGE = 'svc update [--check] [--from FOLDER-OR-URL]\nsvc update --undo';

/**
 * The list of a release and its signature: the name of each file, and its largest size in bytes.
 */
const LIST = { name: 'SHA256SUMS', most: 64 * 1024 };
const SIGNATURE = { name: 'SHA256SUMS.sig', most: 8 * 1024 };

/** `svc update`: replaces the file of the command by that of a newer, signed release. */
export const command: Command = {
  usage: USAGE,
  help: [
    'It takes the release that the server offers, if the maintainers signed it and it is newer.',
    '--check  says which version there is, and changes nothing',
    '--from   reads the files of a release from a folder, or below an address',
    '--undo   puts the version before the last update back',
  ],
  async run(args, context) {
    const options = parseArguments(args, { flags: ['check', 'undo'], values: ['from'] }, USAGE);
    const from = options.value('from');
    if (!options.has('undo')) return update(context, from, options.has('check'));
    if (options.has('check') || from !== undefined) {
      throw usageFailure('--undo excludes --check and --from.', USAGE);
    }
    return undo(context);
  },
};

async function update(
  context: CommandContext,
  from: string | undefined,
  isCheck: boolean,
): Promise<void> {
  const { terminal } = context;
  const keys = releaseKeys();
  const source =
    from === undefined ? serverSource(context.server(), terminal) : namedSource(from, terminal);
  const list = await readList(source, keys);
  const own = version();
  const available = list.version;
  const document = { version: own, available, source: source.name };
  if (!isNewer(list, own, source.name)) {
    const text = `svc ${own} is the version that ${source.name} offers.`;
    terminal.result({ ...document, updated: false }, [text]);
    return;
  }
  const program = installedProgram();
  if (isCheck) {
    const howTo = managerOf(program) ?? 'svc update';
    const lines = [`svc ${available} is there, and this is ${own}. Run: ${howTo}`];
    terminal.result({ ...document, updated: false }, lines);
    return;
  }
  terminal.progress(`svc ${available} is fetched from ${source.name}.`);
  const replaced = await replaceProgram(program, list, source);
  const lines = replaced
    ? [
        `svc ${replaced.to} is installed in place of ${replaced.from}.`,
        'To go back: svc update --undo',
      ]
    : [`Another svc update has installed svc ${available} meanwhile.`];
  terminal.result({ ...document, updated: replaced !== undefined, path: program.path }, lines);
}

/** Reads the list of a release and its signature, and verifies both. */
async function readList(source: ReleaseSource, keys: readonly Buffer[]): Promise<ReleaseList> {
  const content = await readSmall(source, LIST.name, LIST.most);
  const signature = await readSmall(source, SIGNATURE.name, SIGNATURE.most);
  return readReleaseList(content, signature.toString('latin1'), keys);
}

async function undo({ terminal }: CommandContext): Promise<void> {
  const program = installedProgram();
  const { from, to } = await restorePrevious(program);
  const previous = previousPath(program);
  const lines = [`svc ${to} is back in place of ${from}, which is kept as ${previous}.`];
  terminal.result({ version: to, before: from, path: program.path, previous }, lines);
}
