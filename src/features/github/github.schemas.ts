import { z } from 'zod';
import type { LinkedInstallation } from '#domain/github/installations/github-installations.repository.js';
import type { IssuedGitHubToken } from '#domain/github/tokens/github-tokens.service.js';

const LOGIN = z
  .string()
  .regex(/^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?$/, 'must be a GitHub login');

/** The name of a repository on GitHub, with or without `OWNER/` in front. */
const REPOSITORY = z
  .string()
  .regex(/^(?:[A-Za-z0-9_-]{1,100}\/)?(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/, 'must be a repository');

/** The body of `POST /v1/credentials/github/token`. */
export const GITHUB_TOKEN_REQUEST = z
  .object({
    owner: LOGIN.optional().describe(
      'The organization or user of GitHub. It may be left out if one installation is linked.',
    ),
    repositories: z
      .array(REPOSITORY)
      .max(100)
      .optional()
      .describe('The repositories, with or without the owner in front.'),
    permissions: z
      .record(z.string().max(64), z.enum(['read', 'write', 'admin']))
      .optional()
      .describe('The permissions by their names; those of the App unless stated.'),
  })
  .default({})
  .describe('What the token is to open.');
export type GitHubTokenBody = z.output<typeof GITHUB_TOKEN_REQUEST>;

/**
 * The body of `POST /v1/credentials/github/link`, which begins a link between the organization and
 * an installation.
 */
export const LINK_REQUEST = z
  .object({
    owner: LOGIN.optional().describe('The organization or user of GitHub to link.'),
    installation_id: z
      .int()
      .positive()
      .optional()
      .describe('The number of an installation that exists already.'),
  })
  .default({})
  .describe('The installation to link; GitHub asks for it unless stated.');
export type LinkRequest = z.output<typeof LINK_REQUEST>;

/** The body of `PATCH /v1/credentials/github/settings`. */
export const GITHUB_TOKEN_RULE = z
  .strictObject({
    all_repositories: z
      .boolean()
      .describe('True: a request for a token may leave out its `repositories`.'),
  })
  .describe('The rule for GitHub tokens.');
export type GitHubTokenRule = z.output<typeof GITHUB_TOKEN_RULE>;

/**
 * The query with which GitHub sends a browser back to the service. Other parameters are allowed,
 * because GitHub may add some of its own.
 */
export const LINK_CALLBACK = z.object({
  state: z.string().max(4096).default('').describe('The `state` of the link that was begun.'),
  code: z.string().max(512).optional().describe('The code that GitHub gave the browser.'),
  installation_id: z.coerce
    .number()
    .int()
    .positive()
    .optional()
    .describe('The number of the installation.'),
});
export type LinkCallback = z.output<typeof LINK_CALLBACK>;

/**
 * The id of an installation of the GitHub App. An id that is no number matches no installation, so
 * the answer is 404 and not 400.
 */
export const INSTALLATION_ID = z.object({
  id: z.coerce.number().int().catch(0).describe('The number of the installation.'),
});

/** The answer of `POST /v1/credentials/github/token`. */
export const GITHUB_TOKEN_JSON = z
  .object({
    token: z.string().describe('The installation token.'),
    expires_at: z.iso.datetime().describe('The time at which it expires.'),
    permissions: z.record(z.string(), z.string()).readonly().describe('Its permissions.'),
    repositories: z
      .array(z.string())
      .readonly()
      .nullable()
      .meta({ description: 'Null: every repository of the installation.' }),
  })
  .meta({ id: 'GitHubToken', description: 'An installation token of GitHub.' });
/**
 * The type of the answer of `POST /v1/credentials/github/token`, by which the compiler checks
 * answers.
 */
export type GitHubTokenJson = z.output<typeof GITHUB_TOKEN_JSON>;

/** Renders an issued token as JSON. Its expiry is in RFC 3339, in whole seconds. */
export function tokenJson(issued: IssuedGitHubToken): GitHubTokenJson {
  return {
    token: issued.token,
    expires_at: issued.expiresAt.toISOString().replace(/\.\d+Z$/, 'Z'),
    permissions: issued.permissions,
    repositories: issued.repositories,
  };
}

/** An installation in the answer of `GET /v1/credentials/github/status`. */
export const INSTALLATION_JSON = z
  .object({
    id: z.int().describe('The number of the installation.'),
    owner: z.string().describe('The organization or user of GitHub.'),
    suspended: z.boolean().describe('True while GitHub gives no tokens for it.'),
    repository_selection: z.string().describe('`all` repositories of the owner, or `selected`.'),
    linked_at: z.iso.datetime().describe('The time of the link.'),
  })
  .meta({ id: 'GitHubInstallation', description: 'A linked installation of the GitHub App.' });
/**
 * The type of an installation in the answer of `GET /v1/credentials/github/status`, by which the
 * compiler checks answers.
 */
export type InstallationJson = z.output<typeof INSTALLATION_JSON>;

/** The answer of `GET /v1/credentials/github/status`. */
export const STATUS_JSON = z
  .object({
    configured: z.boolean().describe('True if the operator set a GitHub App.'),
    web_url: z.string().nullable().describe('The URL of GitHub for browsers.'),
    app: z.string().nullable().describe('The name of the GitHub App in URLs.'),
    all_repositories: z.boolean().meta({
      description: 'False: a request for a token must name its `repositories`.',
    }),
    installations: z.array(INSTALLATION_JSON).describe('The installations that admit the user.'),
  })
  .describe('The state of GitHub tokens for the user.');
/**
 * The type of the answer of `GET /v1/credentials/github/status`, by which the compiler checks
 * answers.
 */
export type StatusJson = z.output<typeof STATUS_JSON>;

/** Renders a linked installation as JSON, for `GET /v1/credentials/github/status`. */
export function installationJson(linked: LinkedInstallation): InstallationJson {
  return {
    id: linked.id,
    owner: linked.owner,
    suspended: linked.suspended,
    repository_selection: linked.repositorySelection,
    linked_at: linked.linkedAt.toISOString(),
  };
}
