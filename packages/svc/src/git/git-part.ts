import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { blockChange, blockRemoval, stepChange, type Change } from '../changes/change.js';
import type { MarkedBlock } from '../changes/marked-block.js';
import { noteChange } from '../changes/setup-note.js';
import type { SetupPart, SetupPlan, SetupRequest } from '../changes/setup-part.js';
import { folderOf } from '../files/places.js';
import { variable } from '../program/environment.js';
import { CliFailure } from '../program/failure.js';
import { GIT_BLOCK, GIT_FOLDER, gitNote, gitStatus, type GitNote } from './git-token.js';

/**
 * `svc setup git`: writes a credential helper into `~/.gitconfig`, which gives git tokens for
 * GitHub.
 */
export const gitPart: SetupPart = {
  name: GIT_BLOCK,
  summary: 'gives git tokens for the repositories of your organization on GitHub',
  install,
  remove,
};

async function install(request: SetupRequest): Promise<SetupPlan> {
  const { context, home, program, isNamed, reach } = request;
  const server = context.server();
  const before = gitNote(context);
  const owners = reach?.github.map(({ owner }) => owner);
  if (owners?.length === 0 && !isNamed && before[server] === undefined) {
    return { changes: [], notes: ['git was left out: no owner at GitHub admits you.'] };
  }
  try {
    const url = before[server]?.web_url ?? (await gitHubOf(request));
    const after: GitNote = { ...before, [server]: { web_url: url } };
    return {
      changes: [
        ...blockChange(configFile(home), gitBlock(program, after)),
        ...noteChange(context, GIT_BLOCK, after),
      ],
      notes: owners?.length ? [`git: the repositories of ${owners.join(', ')}`] : [],
    };
  } catch (error) {
    if (isNamed || !(error instanceof CliFailure)) throw error;
    return { changes: [], notes: [`git was left out: ${error.message} Later: svc setup git`] };
  }
}

async function remove({ context, home }: SetupRequest): Promise<SetupPlan> {
  const servers = Object.keys(gitNote(context));
  return {
    changes: [
      ...blockRemoval(configFile(home), GIT_BLOCK),
      ...servers.flatMap((server) => tokenRemoval(context.places.state, server)),
      ...noteChange(context, GIT_BLOCK, undefined),
    ],
  };
}

/**
 * Asks the server for the address of the GitHub that it gives tokens for. @throws CliFailure
 * without a login, or without a GitHub App
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
function gitBlock(program: string, note: GitNote): MarkedBlock {
  const lines = Object.entries(note).flatMap(([server, { web_url: url }]) => [
    `[credential ${quoted(url)}]`,
    '\thelper =',
    `\thelper = ${quoted(`!${word(program)} git credential --server ${word(server)}`)}`,
    '\tuseHttpPath = true',
  ]);
  return { name: GIT_BLOCK, lines, position: 'bottom' };
}

/** Quotes a value for the configuration of git. */
function quoted(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** Quotes a text as one word for the shell. */
function word(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function configFile(home: string): string {
  return variable('GIT_CONFIG_GLOBAL') ?? join(home, '.gitconfig');
}
