import { spawnSync } from 'node:child_process';
import type { EnvironmentChange } from '../child/child-environment.js';
import { GITHUB_TOKENS } from '../child/read-only.js';
import type { CommandContext } from '../command/command-context.js';
import { targetOf, type GitTarget } from '../git/credential.js';
import { webUrlOf } from '../git/git-token.js';
import { variable } from '../program/environment.js';
import { CliFailure, STATUS, usageFailure } from '../program/failure.js';

/**
 * The owner at GitHub for which a token is valid, and the repository; `repository` is undefined for
 * all repositories of the owner.
 */
export interface GitHubTarget {
  readonly owner: string;
  readonly repository?: string;
}

/** The permissions to request for a token that can only read. */
const READING = { contents: 'read', metadata: 'read' } as const;

const OWNER = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

/**
 * Reads `OWNER` or `OWNER/REPOSITORY`.
 *
 * @throws CliFailure with status 2 for any other text
 */
export function gitHubTarget(text: string, usage: string): GitHubTarget {
  if (OWNER.test(text)) return { owner: text };
  const target = targetOf(text);
  if (target) return target;
  throw usageFailure('--github must be OWNER or OWNER/REPOSITORY.', usage);
}

/**
 * Returns the repository of the working directory: that of the remote `origin` of git, if it is at
 * the GitHub with the given URL. Returns undefined otherwise.
 */
export function repositoryHere(webUrl: string): GitTarget | undefined {
  const args = ['config', '--get', 'remote.origin.url'];
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' });
  if (status !== 0) return undefined;
  const { host, hostname, origin } = new URL(webUrl);
  const url = stdout.trim();
  const starts = [`${origin}/`, `ssh://git@${host}/`, `git@${hostname}:`];
  const start = starts.find((one) => url.startsWith(one));
  return start === undefined ? undefined : targetOf(url.slice(start.length));
}

/**
 * Returns the variables with a new token for GitHub, as `gh` and other tools read them. A token
 * that can only read also becomes the credential of git, because `svc git` gives one that can
 * write.
 *
 * @throws CliFailure if the server refuses, or gives more than read access although only that was
 *   requested
 */
export async function gitHubVariables(
  context: CommandContext,
  { owner, repository }: GitHubTarget,
  isReadOnly: boolean,
): Promise<EnvironmentChange> {
  const webUrl = await webUrlOf(context);
  const client = await context.client();
  const issued = await client.post<{ readonly token: unknown; readonly permissions: unknown }>(
    '/v1/credentials/github/token',
    {
      owner,
      ...(repository === undefined ? {} : { repositories: [repository] }),
      ...(isReadOnly ? { permissions: READING } : {}),
    },
  );
  const { token, permissions } = issued;
  if (typeof token !== 'string' || !/^[!-~]+$/.test(token)) {
    throw new CliFailure('The answer of the server is no token for GitHub.', 'Run: svc doctor');
  }
  if (isReadOnly && !canOnlyRead(permissions)) {
    const message = 'The server gave a GitHub token that can do more than read.';
    throw new CliFailure(message, 'Tell an admin of your organization.', STATUS.refused);
  }
  const names = namesFor(new URL(webUrl).host);
  const [first = ''] = names;
  return {
    set: {
      ...Object.fromEntries(names.map((name) => [name, token])),
      ...hostVariable(new URL(webUrl).host),
      ...(isReadOnly ? gitVariables(new URL(webUrl).origin, first) : {}),
    },
    unset: GITHUB_TOKENS,
  };
}

function canOnlyRead(permissions: unknown): boolean {
  const entries = Object.entries(Object(permissions) as Record<string, unknown>);
  return entries.length > 0 && entries.every(([, level]) => level === 'read');
}

/**
 * Returns the names of the variables for a token. `gh` sends `GH_TOKEN` to github.com and to hosts
 * of ghe.com alone. A token of any other GitHub gets other names, so that `gh` never sends it to
 * github.com.
 */
function namesFor(host: string): readonly string[] {
  return host === 'github.com' || host.endsWith('.ghe.com')
    ? ['GH_TOKEN', 'GITHUB_TOKEN']
    : ['GH_ENTERPRISE_TOKEN', 'GITHUB_ENTERPRISE_TOKEN'];
}

function hostVariable(host: string): Readonly<Record<string, string>> {
  return host === 'github.com' ? {} : { GH_HOST: host };
}

/**
 * Returns the variables by which git takes a token of the environment for a GitHub, and asks no
 * other helper. Their numbers continue those of the `GIT_CONFIG_KEY_n` variables that the
 * environment already has.
 */
function gitVariables(origin: string, name: string): Readonly<Record<string, string>> {
  const count = Number(variable('GIT_CONFIG_COUNT') ?? 0);
  const helper = `!f() { test "$1" = get && printf 'username=x-access-token\\npassword=%s\\n' "$${name}"; }; f`;
  const key = `credential.${origin}.helper`;
  return {
    GIT_CONFIG_COUNT: String(count + 2),
    [`GIT_CONFIG_KEY_${count}`]: key,
    [`GIT_CONFIG_VALUE_${count}`]: '',
    [`GIT_CONFIG_KEY_${count + 1}`]: key,
    [`GIT_CONFIG_VALUE_${count + 1}`]: helper,
  };
}
