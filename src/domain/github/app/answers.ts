import { z } from 'zod';

/** A level of access to one part of GitHub, such as the contents of repositories. */
const LEVEL = z.enum(['read', 'write', 'admin']);

/**
 * The permissions of a token: the level of access to each part of GitHub, by the name of the part.
 */
export const PERMISSIONS = z.record(z.string(), LEVEL);
export type GitHubPermissions = z.output<typeof PERMISSIONS>;

/** The response of GitHub to `POST /app/installations/{id}/access_tokens`: the new token. */
export const MINTED = z.object({
  token: z.string().min(1).max(4096),
  expires_at: z.iso.datetime({ offset: true }),
  permissions: PERMISSIONS.default({}),
  repositories: z.array(z.object({ name: z.string() })).optional(),
});

/** An installation of the GitHub App, as the API and the webhooks of GitHub show it. */
const INSTALLATION = z.object({
  id: z.int().positive(),
  account: z.object({
    id: z.int(),
    login: z.string().min(1).max(100),
    type: z.string().optional(),
  }),
  repository_selection: z.enum(['all', 'selected']).default('all'),
  suspended_at: z.string().nullish(),
  updated_at: z.union([z.iso.datetime({ offset: true }), z.int()]).optional(),
});
type InstallationJson = z.output<typeof INSTALLATION>;

/**
 * An installation of the GitHub App, or one that cannot be linked because its account has no
 * `login` (user name at GitHub). Such an account is an enterprise, or one that GitHub does not
 * show.
 */
export const ANY_INSTALLATION = z.union([
  INSTALLATION,
  z.object({ account: z.object({ login: z.undefined().optional() }).nullable() }),
]);

/** A page of a list that GitHub sends in several responses, one for each page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** The number of items on all pages together, if GitHub states it. */
  readonly total?: number | undefined;
}

/** A page of the response of GitHub to `GET /user/installations`. */
export const INSTALLATIONS = z
  .object({ installations: z.array(ANY_INSTALLATION), total_count: z.int().optional() })
  .transform(({ installations, total_count: total }) => ({ items: installations, total }));

/**
 * The response of `POST /login/oauth/access_token`. GitHub answers 200 even to an invalid code, so
 * only a response that fits this schema is a success.
 */
export const USER_TOKEN = z.object({ access_token: z.string().min(1) });

/** The response of GitHub to `GET /user`. */
export const GITHUB_USER = z.object({ id: z.int() });

/** A page of the response of GitHub to `GET /user/memberships/orgs`. */
export const MEMBERSHIPS = z
  .array(
    z.object({
      role: z.string(),
      state: z.string(),
      organization: z.object({ id: z.int() }),
    }),
  )
  .transform((items) => ({ items }));

/**
 * An installation of the GitHub App in an account at GitHub. The account belongs to an organization
 * or a person.
 */
export interface GitHubInstallation {
  readonly id: number;
  readonly accountId: number;
  /** The `login` (user name) of the account at GitHub. */
  readonly owner: string;
  readonly isOfUser: boolean;
  readonly repositorySelection: 'all' | 'selected';
  readonly suspended: boolean;
  /**
   * The time of the last change of the installation at GitHub; undefined if GitHub did not state
   * it.
   */
  readonly changedAt: Date | undefined;
}

/**
 * Reads an installation from GitHub's JSON, in which `updated_at` may be a text (RFC 3339) or, in a
 * webhook, seconds since 1970.
 *
 * @returns undefined for an installation whose account has no `login` (user name at GitHub)
 */
export function installationOf(
  json: z.output<typeof ANY_INSTALLATION>,
): GitHubInstallation | undefined {
  return 'id' in json ? linkable(json) : undefined;
}

function linkable(json: InstallationJson): GitHubInstallation {
  const { account, updated_at: updated } = json;
  return {
    id: json.id,
    accountId: account.id,
    owner: account.login,
    isOfUser: account.type === 'User',
    repositorySelection: json.repository_selection,
    suspended: typeof json.suspended_at === 'string',
    changedAt:
      updated === undefined
        ? undefined
        : new Date(typeof updated === 'number' ? updated * 1000 : updated),
  };
}
