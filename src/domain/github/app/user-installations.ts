import type { z } from 'zod';
import type { UpstreamAnswer } from '#platform/outbound/upstream-http.js';
import {
  GITHUB_USER,
  INSTALLATIONS,
  MEMBERSHIPS,
  installationOf,
  type GitHubInstallation,
  type Page,
} from './answers.js';
import { GitHubFailure } from './github-failure.js';
import { readAnswer } from './github-http.js';

/** A function that sends a GET request with the token of a GitHub user. */
export type AskAsUser = (path: string, name: string) => Promise<UpstreamAnswer>;

/**
 * The installations of the GitHub App that a GitHub user can see: those that the user administers,
 * and those that the user only sees.
 */
export interface AdministeredInstallations {
  readonly administered: readonly GitHubInstallation[];
  /** Installations that the user sees as a member or collaborator, and does not administer. */
  readonly onlySeen: readonly GitHubInstallation[];
}

const PAGE = 100;
/**
 * The most pages of a list that are read, so that a faulty server cannot send pages without end. No
 * admin has 2,000 installations.
 */
const MOST_PAGES = 20;

/**
 * Reads the installations of the GitHub App that a GitHub user sees, and finds those that the user
 * administers. A user administers an installation of the own account, or of an organization that
 * the user owns. It is not enough that the user sees an installation. Even a collaborator of one
 * repository sees the installation, and could otherwise link all repositories of the account to an
 * organization of this service.
 *
 * @param isGitHub true if the API is that of GitHub itself; false for another server with the same
 *   API. If that server lacks a path, the check that needs the path is left out
 */
export async function administeredBy(
  ask: AskAsUser,
  isGitHub: boolean,
): Promise<AdministeredInstallations> {
  const listed = await pagesOf(ask, '/user/installations', INSTALLATIONS);
  const seen = listed.flatMap((one) => installationOf(one) ?? []);
  const ofUsers = seen.some(({ isOfUser }) => isOfUser);
  const userId = ofUsers ? await whereOffered(() => ownId(ask), isGitHub) : undefined;
  const owned = seen.every(({ isOfUser }) => isOfUser)
    ? undefined
    : await whereOffered(() => ownedOrganizations(ask), isGitHub);
  const isAdministered = ({ isOfUser, accountId }: GitHubInstallation) =>
    isOfUser
      ? userId === undefined || accountId === userId
      : owned === undefined || owned.has(accountId);
  return {
    administered: seen.filter(isAdministered),
    onlySeen: seen.filter((one) => !isAdministered(one)),
  };
}

async function ownId(ask: AskAsUser): Promise<number> {
  return (await readAnswer(await ask('/user', 'GET /user'), GITHUB_USER, 'GET /user')).id;
}

/**
 * Returns the ids of the GitHub organizations that the user owns. The GitHub App needs the
 * permission `Members: read`; without it the result is empty.
 */
async function ownedOrganizations(ask: AskAsUser): Promise<ReadonlySet<number>> {
  try {
    const memberships = await pagesOf(ask, '/user/memberships/orgs', MEMBERSHIPS);
    const owned = memberships.filter(({ role, state }) => role === 'admin' && state === 'active');
    return new Set(owned.map(({ organization }) => organization.id));
  } catch (error) {
    if (error instanceof GitHubFailure && error.status === 403 && error.reason === 'other') {
      return new Set();
    }
    throw error;
  }
}

/**
 * Reads from a path of GitHub's API that another server with this API, such as a GitHub Enterprise
 * Server, may lack. Returns undefined if such a server answers 404. A 404 of GitHub itself is
 * thrown as an error.
 */
async function whereOffered<T>(read: () => Promise<T>, isGitHub: boolean): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!isGitHub && error instanceof GitHubFailure && error.status === 404) return undefined;
    throw error;
  }
}

/**
 * Reads all pages of a list. GitHub names the next page in the header `Link`. Another server may
 * not name it. Pages are then read until one is not full and the stated total number of items is
 * reached.
 */
async function pagesOf<Item>(
  ask: AskAsUser,
  path: string,
  schema: z.ZodType<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const response = await ask(`${path}?per_page=${PAGE}&page=${page}`, `GET ${path}`);
    const read = await readAnswer(response, schema, `GET ${path}`);
    items.push(...read.items);
    const isNamed = /rel="?next"?/.test(response.headers.get('link') ?? '');
    const isFull = read.items.length >= PAGE || items.length < (read.total ?? 0);
    if (read.items.length === 0 || !(isNamed || isFull)) break;
  }
  return items;
}
