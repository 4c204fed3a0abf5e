import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { blockChange, blockRemoval, stepChange, type Change } from '../changes/change.js';
import type { SectionFormat } from '../changes/kept-lines.js';
import type { MarkedBlock } from '../changes/marked-block.js';
import { noteChange } from '../changes/setup-note.js';
import type { SetupPart, SetupPlan, SetupRequest } from '../changes/setup-part.js';
import { fileNoteChange, fileRemovals, toolFile, type ToolFile } from '../changes/tool-file.js';
import { folderOf } from '../files/places.js';
import { variable } from '../program/environment.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { GIT_BLOCK, GIT_FOLDER, gitNote, gitStatus, type GitNote } from './git-token.js';
import {
  chosenSigning,
  programChange,
  programRemoval,
  quoted,
  SIGN_NOTE,
  signLines,
  signNote,
  word,
  type SignNote,
} from './sign-block.js';

/**
 * The format of the block. `git config --global user.email` writes into the last section `[user]`
 * of the file, and the block may have that section.
 */
const SECTIONS: SectionFormat = {
  keys: ['helper', 'usehttppath', 'signingkey', 'format', 'program', 'gpgsign'],
  outlivesBlock: true,
};

/**
 * `svc setup git`: writes a credential helper into `~/.gitconfig`, which gives git tokens for
 * GitHub. With `--sign`, git also signs commits with the SSH certificate.
 */
export const gitPart: SetupPart = {
  name: GIT_BLOCK,
  summary: 'gives git tokens for the repositories of your organization on GitHub',
  flags: ['sign', 'local', 'global'],
  help: [
    '--sign            signs commits and tags with the SSH certificate',
    '--local           signs in the repository of this folder alone; --global, the default, in all',
  ],
  install,
  remove,
};

async function install(request: SetupRequest): Promise<SetupPlan> {
  const { context, home, program } = request;
  const server = context.server();
  const before = gitNote(context);
  const signing = signingOf(request, server);
  const { url, notes } = await chosenGitHub(request, before[server]?.web_url);
  const after: GitNote = url === undefined ? before : { ...before, [server]: { web_url: url } };
  const file = configFile(home);
  const lines = [
    ...helperLines(program, after),
    ...(signing?.global === true ? signLines(context, signing) : []),
  ];
  return {
    changes: [
      ...(signing ? programChange(context, signing, program) : []),
      ...(lines.length > 0 ? blockChange(file.present, blockOf(lines)) : []),
      ...(lines.length > 0 ? fileNoteChange(context, file) : []),
      ...(signing?.repositories ?? []).flatMap((path) =>
        existsSync(path) ? blockChange(path, blockOf(signLines(context, signing as SignNote))) : [],
      ),
      ...noteChange(context, GIT_BLOCK, Object.keys(after).length > 0 ? after : undefined),
      ...noteChange(context, SIGN_NOTE, signing),
    ],
    notes,
  };
}

/**
 * Returns the record of how commits are signed: that of the options, or else that of the last
 * setup; undefined if there is neither.
 * @throws CliFailure for `--local` or `--global` alone
 */
function signingOf({ context, options }: SetupRequest, server: string): SignNote | undefined {
  const before = signNote(context);
  if (options.has('sign')) return chosenSigning(server, options.has('local'), before);
  if (!options.has('local') && !options.has('global')) return before;
  const whatToDo = 'Run: svc setup git --sign --local';
  throw new CliFailure('--local and --global go with --sign.', whatToDo, STATUS.usage);
}

/**
 * Returns the URL of the GitHub for which git gets tokens; undefined if the server has none for the
 * user. With `--sign` that is no failure, because signatures need no GitHub.
 */
async function chosenGitHub(
  request: SetupRequest,
  known: string | undefined,
): Promise<{ readonly url: string | undefined; readonly notes: readonly string[] }> {
  const { isNamed, options, reach } = request;
  const signs = options.has('sign');
  const isNeeded = isNamed && !signs;
  const owners = reach?.github.map(({ owner }) => owner);
  const notes = owners?.length ? [`git: the repositories of ${owners.join(', ')}`] : [];
  if (known !== undefined) return { url: known, notes };
  if (owners?.length === 0 && !isNeeded) {
    const why = 'git was left out: no owner at GitHub admits you.';
    return { url: undefined, notes: signs ? [] : [why] };
  }
  try {
    return { url: await gitHubOf(request), notes };
  } catch (error) {
    if (isNeeded || !(error instanceof CliFailure)) throw error;
    const why = `git was left out: ${error.message} Later: svc setup git`;
    return { url: undefined, notes: signs ? [] : [why] };
  }
}

async function remove({ context, home }: SetupRequest): Promise<SetupPlan> {
  const servers = Object.keys(gitNote(context));
  const signing = signNote(context);
  const files = fileRemovals(context, configFile(home), (path) =>
    blockRemoval(path, GIT_BLOCK, SECTIONS),
  );
  return {
    ...files,
    changes: [
      ...files.changes,
      ...(signing?.repositories ?? []).flatMap((path) => blockRemoval(path, GIT_BLOCK, SECTIONS)),
      ...(signing ? programRemoval(context, signing) : []),
      ...servers.flatMap((server) => tokenRemoval(context.places.state, server)),
      ...noteChange(context, GIT_BLOCK, undefined),
      ...noteChange(context, SIGN_NOTE, undefined),
    ],
  };
}

/**
 * Asks the server for the URL of the GitHub that it gives tokens for.
 * @throws CliFailure without a login, or if the server has no GitHub App
 */
async function gitHubOf({ context }: SetupRequest): Promise<string> {
  const { web_url: url } = await gitStatus(context);
  if (url !== null) return url;
  const { host } = new URL(context.server());
  const message = `${host} issues no tokens for GitHub.`;
  throw new CliFailure(message, 'Ask an admin to configure a GitHub App.');
}

function tokenRemoval(state: Parameters<typeof folderOf>[0], server: string): Change[] {
  const folder = folderOf(state, server);
  const path = folder.file(GIT_FOLDER);
  if (!existsSync(path)) return [];
  return [stepChange(`remove ${path} (GitHub tokens)`, () => folder.remove(GIT_FOLDER))];
}

/**
 * Returns the lines for `~/.gitconfig`. The line with an empty helper switches off the helpers
 * before it, which could store a token on disk. `useHttpPath` makes git name the repository, so
 * that the token is for that repository only.
 */
function helperLines(program: string, note: GitNote): string[] {
  return Object.entries(note).flatMap(([server, { web_url: url }]) => [
    `[credential ${quoted(url)}]`,
    '\thelper =',
    `\thelper = ${quoted(`!${word(program)} git credential --server ${word(server)}`)}`,
    '\tuseHttpPath = true',
  ]);
}

function blockOf(lines: readonly string[]): MarkedBlock {
  return { name: GIT_BLOCK, lines, position: 'bottom', sections: SECTIONS };
}

function configFile(home: string): ToolFile {
  const name = 'GIT_CONFIG_GLOBAL';
  return toolFile(GIT_BLOCK, name, { named: variable(name), usual: join(home, '.gitconfig') });
}
