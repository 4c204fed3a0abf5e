import { setupNote } from '../changes/setup-note.js';
import type { CommandContext } from '../command/command-context.js';
import { serverAddress } from '../files/config-file.js';
import { now } from '../program/clock.js';
import { CliFailure } from '../program/failure.js';
import { readAnyToken } from '../server/stored-token.js';
import type { GitTarget } from './credential.js';

/**
 * The name of three things: the command's block in `~/.gitconfig`, the part of `svc setup`, and its
 * entry in `config.json`.
 */
export const GIT_BLOCK = 'git';

/** The folder of the cached tokens, inside the folder of a server's secrets. */
export const GIT_FOLDER = 'git';

/** The remaining milliseconds of validity below which a cached token is not used. */
const MARGIN = 10 * 60_000;

/** The record of `svc setup git` in `config.json`: the URL of GitHub for each server. */
export type GitNote = Readonly<Record<string, { readonly web_url: string }>>;

/** A token for GitHub in the answer of the server, and in the cache. */
export interface GitToken {
  readonly token: string;
  /** The time at which the token expires (RFC 3339). */
  readonly expires_at: string;
}

/** The answer of `GET /v1/credentials/github/status`. */
export interface GitStatus {
  readonly configured: boolean;
  readonly web_url: string | null;
  readonly installations: readonly { readonly owner: string }[];
}

/** Returns what `svc setup git` has recorded; an empty object before the first setup. */
export function gitNote(context: CommandContext): GitNote {
  return (setupNote(context, GIT_BLOCK) ?? {}) as GitNote;
}

/**
 * Returns the URL of the GitHub for which the server gives tokens: the recorded one, or else the
 * one that the server states.
 */
export async function webUrlOf(context: CommandContext): Promise<string> {
  const known = gitNote(context)[context.server()]?.web_url;
  return known ?? (await gitStatus(context)).web_url ?? noGitHub(context);
}

/** Asks the server about the GitHub for which it gives tokens. */
export async function gitStatus(context: CommandContext): Promise<GitStatus> {
  const client = await context.client();
  const status = await client.get<GitStatus>('/v1/credentials/github/status');
  // The URL becomes a line of `~/.gitconfig`, so it must be a URL and nothing else.
  return { ...status, web_url: status.web_url === null ? null : serverAddress(status.web_url) };
}

/**
 * Returns a token for a repository: the cached one, or a new one from the server. If several
 * processes need a new one, only one asks the server.
 *
 * @throws CliFailure if the server refuses
 */
export async function tokenFor(context: CommandContext, target: GitTarget): Promise<GitToken> {
  const fresh = cachedToken(context, target);
  if (fresh) return fresh;
  const folder = context.folder();
  return folder.withLock(GIT_FOLDER, async () => {
    const other = cachedToken(context, target);
    if (other) return other;
    const issued = await askForToken(context, target);
    folder.writeJson(fileOf(target), issued);
    return issued;
  });
}

/**
 * Asks the server for a token. If the user has logged in again before the answer arrives, the
 * server is asked again. The first token is dropped, because it ends with the earlier login.
 */
async function askForToken(context: CommandContext, target: GitTarget): Promise<GitToken> {
  const client = await context.client();
  const { owner, repository } = target;
  const asked = { owner, repositories: [repository] };
  const issued = await client.post<GitToken>('/v1/credentials/github/token', asked);
  const { token, expires_at } = issued;
  // A token with a line feed would add lines to the answer to git, so it is refused.
  if (!/^[!-~]+$/.test(token) || Number.isNaN(Date.parse(expires_at))) {
    throw new CliFailure('The answer of the server is no token for GitHub.', 'Run: svc doctor');
  }
  // The request itself may have renewed the login, if the server demanded a touch.
  const isSameLogin = readAnyToken(context.folder(), 'token')?.access_token === client.sentToken;
  return isSameLogin ? { token, expires_at } : askForToken(context, target);
}

/**
 * Removes the cached token of a repository if GitHub refused this token, or if git does not say
 * which token was refused (an empty text). A newer token is kept.
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
 * Returns the name of the file with the cached token of a repository. It is in lower case, because
 * GitHub ignores the case of names.
 */
function fileOf({ owner, repository }: GitTarget): string {
  return `${GIT_FOLDER}/${owner}/${repository}.json`.toLowerCase();
}

function noGitHub(context: CommandContext): never {
  const { host } = new URL(context.server());
  throw new CliFailure(`${host} issues no tokens for GitHub.`, 'Ask an admin.');
}
