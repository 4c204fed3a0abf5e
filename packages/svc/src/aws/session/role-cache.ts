import { createHash } from 'node:crypto';
import type { CommandContext } from '../../command/command-context.js';
import type { PrivateFolder } from '../../files/private-folder.js';
import { now } from '../../program/clock.js';
import { CliFailure, notLoggedIn, STATUS } from '../../program/failure.js';
import { readAnyToken, readToken } from '../../server/stored-token.js';
import { assumeRole, type RoleCredentials } from './assume-role.js';
import type { RoleChoices } from './role-choices.js';
import { stsEndpoint } from './sts-endpoint.js';

/** The folder of cached credentials, inside the local folder of each server. */
export const CACHE_FOLDER = 'aws';

/**
 * The remaining milliseconds of validity below which cached credentials are renewed. The SDKs of
 * AWS also ask for new ones at that moment.
 */
const RENEWAL = 10 * 60_000;
/**
 * The remaining milliseconds of validity below which cached credentials are not used, even if the
 * server cannot be reached.
 */
const LEAST = 60_000;

/**
 * Cached credentials of a role, with a hash of the login from which they came, so that those of an
 * earlier login are not used.
 */
interface CachedRole {
  readonly login: string;
  readonly credentials: RoleCredentials;
}

/**
 * Returns the credentials of a role: cached ones that are valid for 10 minutes more, otherwise new
 * ones. If several processes need new ones, only one fetches them. If the server or STS cannot be
 * reached or fails, cached ones are used as long as they are valid for one minute more.
 *
 * @throws CliFailure if the login has ended, or the server or STS refuses
 */
export async function roleCredentials(
  context: CommandContext,
  choices: RoleChoices,
): Promise<RoleCredentials> {
  const folder = context.folder();
  const name = nameOf(choices);
  const cached = cachedRole(folder, name);
  if (cached && leftOf(cached) > RENEWAL) return cached;
  try {
    return await folder.withLock(name.replace('/', '-'), async () => {
      const renewed = cachedRole(folder, name);
      if (renewed && leftOf(renewed) > RENEWAL) return renewed;
      return renew(context, choices, folder, name);
    });
  } catch (error) {
    const isOffline = error instanceof CliFailure && error.status === STATUS.failed;
    if (isOffline && cached && leftOf(cached) > LEAST) return cached;
    throw error;
  }
}

async function renew(
  context: CommandContext,
  choices: RoleChoices,
  folder: PrivateFolder,
  name: string,
): Promise<RoleCredentials> {
  const token = readToken(folder, 'token');
  if (!token) throw notLoggedIn(readAnyToken(folder, 'token') && 'Your login has ended.');
  const credentials = await newCredentials(context, choices);
  folder.writeJson(name, { login: loginOf(token.access_token), credentials } satisfies CachedRole);
  return credentials;
}

/**
 * Returns new credentials of a role, which are not cached.
 *
 * @throws CliFailure if the login has ended, or the server or STS refuses
 */
export async function newCredentials(
  context: CommandContext,
  choices: RoleChoices,
): Promise<RoleCredentials> {
  const client = await context.client();
  const { role, readOnly } = choices;
  const asked = { role_arn: role, ...(readOnly && { read_only: true }) };
  const path = '/v1/credentials/aws/token';
  const { id_token: webIdentity } = await client.post<{ id_token: string }>(path, asked);
  return assumeRole(webIdentity, choices, context.terminal);
}

/**
 * Reads the cached credentials that the present login got; undefined if there are none, also if
 * they came from an earlier login.
 */
function cachedRole(folder: PrivateFolder, name: string): RoleCredentials | undefined {
  const token = readAnyToken(folder, 'token');
  if (token === undefined) return undefined;
  const cached: Partial<CachedRole> | undefined = folder.readJson(name);
  return cached?.login === loginOf(token.access_token) ? cached.credentials : undefined;
}

function leftOf({ Expiration }: RoleCredentials): number {
  return Date.parse(Expiration) - now();
}

/**
 * Returns the name of the file with the cached credentials of a role. The name differs for another
 * duration, session name or URL of STS, and for a session that can only read.
 */
function nameOf(choices: RoleChoices): string {
  const { role, duration, sessionName = '', readOnly } = choices;
  const ofReading = readOnly ? ['read-only'] : [];
  const wish = JSON.stringify([role, duration, sessionName, stsEndpoint(choices), ...ofReading]);
  return `${CACHE_FOLDER}/${sha256(wish).slice(0, 32)}.json`;
}

function loginOf(accessToken: string): string {
  return sha256(`svc aws ${accessToken}`);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
