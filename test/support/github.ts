import { GitHubStandIn } from '@svc/stand-ins/github';
import type { StandInInstallation } from '@svc/stand-ins/github-state';
import { startTestApp, type EnrolledUser, type TestApp, type TestAppOptions } from './app.js';
import { newAddress, type Answer, type Client } from './client.js';
import { foundOrganization, type ScimOrganization } from './scim-organization.js';

/**
 * The service with a GitHub App, a stand-in for GitHub, and an organization that has linked an
 * installation.
 */
export interface GitHubApplication {
  readonly app: TestApp;
  readonly github: GitHubStandIn;
  readonly organization: ScimOrganization;
  readonly installation: StandInInstallation;
  /** Creates a user by SCIM, and enrolls a key. The returned `id` is the SCIM id. */
  member(email: string): Promise<EnrolledUser & { readonly id: string }>;
  close(): Promise<void>;
}

/**
 * Starts the service, and links the installation at `octo-org` with the repositories `hello` and
 * `world`. GitHub tokens may be for all repositories of the installation, as in organizations from
 * before version 0.10.
 */
export async function startGitHubApplication(
  options: TestAppOptions = {},
): Promise<GitHubApplication> {
  const github = await GitHubStandIn.start();
  const environment = { ...github.environment, ...options.environment };
  const app = await startTestApp({ ...options, environment });
  const organization = await foundOrganization(app, 'octo.example');
  const installation = github.state.install('octo-org', { repositories: ['hello', 'world'] });
  const linked = await link(github, organization.admin, installation);
  if (linked.status !== 200) throw new Error(`the link failed: ${linked.text}`);
  await app.dataSource.query('UPDATE organizations SET github_all_repositories = true');
  return {
    app,
    github,
    organization,
    installation,
    async member(email) {
      const { id } = (await organization.scim('POST', '/Users', { userName: email })).json;
      return { ...(await app.enrolled(email)), id: id as string };
    },
    async close() {
      await app.close();
      await github.close();
    },
  };
}

/**
 * Links an installation of the GitHub App, as the user who owns it at GitHub. Returns the last
 * page.
 */
export async function link(
  github: GitHubStandIn,
  { client }: Pick<EnrolledUser, 'client'>,
  installation: StandInInstallation,
): Promise<Answer> {
  const { id, account } = installation;
  github.state.browserUser = { id: 7, login: 'owner', sees: [id], owns: [account.id] };
  return authorize(client, { owner: account.login });
}

/**
 * Begins to link an installation, and follows the redirects through GitHub. Returns the last page,
 * or the first response if its status is not 200.
 */
export async function authorize(client: Client, named: object): Promise<Answer> {
  const begun = await client.post('/v1/credentials/github/link', named);
  if (begun.status !== 200) return begun;
  return client.follow(begun.json.authorization_url as string);
}

/** Sets, as an admin, if a GitHub token may be for every repository of the installation. */
export function allowAll(client: Client, isAllowed: boolean): Promise<Answer> {
  const body = { all_repositories: isAllowed };
  return client.send('PATCH', '/v1/credentials/github/settings', { address: newAddress(), body });
}

/** Requests a GitHub token, from an unused client IP address. */
export function askToken(client: Client, body: object = {}): Promise<Answer> {
  return client.post('/v1/credentials/github/token', body, { address: newAddress() });
}
