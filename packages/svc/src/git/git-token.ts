import { setupNote } from '../changes/setup-note.js';
import type { CommandContext } from '../command/command-context.js';
import { serverAddress } from '../files/config-file.js';
import { now } from '../program/clock.js';
import { CliFailure } from '../program/failure.js';
import type { GitTarget } from './credential.js';

/** The name of the block in the file, of the part of `svc setup`, and of its note. */
export const GIT_BLOCK = 'git';

/** The folder of the cached tokens, inside the folder of a server's secrets. */
export const GIT_FOLDER = 'git';

/** Milliseconds. A cached token that is valid for less time is not used. */
const MARGIN = 10 * 60_000;

/** The note of `svc setup git` in `config.json`: the GitHub of each server. */
export type GitNote = Readonly<Record<string, { readonly web_url: string }>>;

/** A token in the answer of the server, and in the cache. */
export interface GitToken {
  readonly token: string;
  /** The end of the token as a time of RFC 3339. */
  readonly expires_at: string;
}

/** The answer of `GET /v1/credentials/github/status`. */
export interface GitStatus {
  readonly configured: boolean;
  readonly web_url: string | null;
  readonly installations: readonly { readonly owner: string }[];
}

/** Returns the note of `svc setup git`; it is empty before the first setup. */
export function gitNote(context: CommandContext): GitNote {
  return (setupNote(context, GIT_BLOCK) ?? {}) as GitNote;
}

/**
 * Returns the address of the server's GitHub: that in the note of the setup, or else that which the
 * server states.
 */
export async function webUrlOf(context: CommandContext): Promise<string> {
  const known = gitNote(context)[context.server()]?.web_url;
  return known ?? (await gitStatus(context)).web_url ?? noGitHub(context);
}

/** Asks the server about its GitHub. */
export async function gitStatus(context: CommandContext): Promise<GitStatus> {
  const client = await context.client();
  const status = await client.get<GitStatus>('/v1/credentials/github/status');
  // The address becomes a line of ~/.gitconfig: it must be an address and nothing else.
  return { ...status, web_url: status.web_url === null ? null : serverAddress(status.web_url) };
}

/**
 * Returns a token for a repository: the cached one, or a new one from the server. Only one of
 * several processes asks the server.
 *
 * @throws CliFailure when the server refuses
 */
export async function tokenFor(context: CommandContext, target: GitTarget): Promise<GitToken> {
  const fresh = cachedToken(context, target);
  if (fresh) return fresh;
  const folder = context.folder();
  return folder.withLock(GIT_FOLDER, async () => {
    const other = cachedToken(context, target);
    if (other) return other;
    const client = await context.client();
    const { owner, repository } = target;
    const asked = { owner, repositories: [repository] };
    const issued = await client.post<GitToken>('/v1/credentials/github/token', asked);
    const { token, expires_at } = issued;
    // A line feed in it would be more lines of the answer to git.
    if (!/^[!-~]+$/.test(token) || Number.isNaN(Date.parse(expires_at))) {
      throw new CliFailure('The answer of the server is no token for GitHub.', 'Run: svc doctor');
    }
    folder.writeJson(fileOf(target), { token, expires_at });
    return { token, expires_at };
  });
}

/**
 * Removes the cached token of a repository if it is the one that GitHub refused. A newer token is
 * kept.
 */
export function dropToken(context: CommandContext, target: GitTarget, refused: string): void {
  const folder = context.folder();
  const cached: Partial<GitToken> | undefined = folder.readJson(fileOf(target));
  if (refused === '' || cached?.token === refused) folder.remove(fileOf(target));
}

function cachedToken(context: CommandContext, target: GitTarget): GitToken | undefined {
  const cached: Partial<GitToken> | undefined = context.folder().readJson(fileOf(target));
  const { token, expires_at } = cached ?? {};
  if (token === undefined || expires_at === undefined) return undefined;
  return Date.parse(expires_at) - now() > MARGIN ? { token, expires_at } : undefined;
}

/**
 * Returns the name of the file of a cached token. It is in lower case, because GitHub ignores the
 * case of names.
 */
function fileOf({ owner, repository }: GitTarget): string {
  return `${GIT_FOLDER}/${owner}/${repository}.json`.toLowerCase();
}

function noGitHub(context: CommandContext): never {
  const { host } = new URL(context.server());
  throw new CliFailure(`${host} issues no tokens for GitHub.`, 'Ask an admin.');
}
