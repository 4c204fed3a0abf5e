import type { CommandContext } from '../command/command-context.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { now } from '../program/clock.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { sha256 } from '../server/dpop-key.js';
import { accepted, codeOf, detailOf, documentOf } from '../server/server-client.js';
import { reachPage } from '../reach/own-reach.js';
import { readAnyToken, readToken } from '../server/stored-token.js';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/**
 * The remaining milliseconds of validity below which a token for a cluster is renewed. The token is
 * valid for five minutes.
 */
const RENEWAL_MARGIN = 60_000;

/** A token for a Kubernetes cluster, as it is stored in its file. */
export interface ClusterToken {
  readonly token: string;
  /** The time at which the token expires (RFC 3339). */
  readonly expires_at: string;
  /**
   * The SHA-256 of the login's access token. A token for a cluster must not be used if it is from
   * an earlier login, which this hash shows.
   */
  readonly login: string;
}

/**
 * Returns a token for the cluster that has a resource indicator (RFC 8707): the stored token, or a
 * new one. If several processes need a new one, only one asks the server.
 *
 * @throws CliFailure without a login, or if the server refuses
 */
export async function clusterToken(
  context: CommandContext,
  resource: string,
): Promise<ClusterToken> {
  const server = context.server();
  const folder = context.folder(server);
  const file = {
    name: `kubectl/${await sha256(resource)}.json`,
    login: await sha256(loginOf(folder)),
  };
  const stored = freshToken(folder, file);
  if (stored) return stored;
  return folder.withLock('kubectl', async () => {
    const made = freshToken(folder, file);
    if (made) return made;
    const issued = await exchange(context, { server, folder, resource });
    // If the server required a touch of the key, there is a new login now, so the login is read
    // again.
    const token: ClusterToken = { ...issued, login: await sha256(loginOf(folder)) };
    folder.writeJson(file.name, token);
    return token;
  });
}

function loginOf(folder: PrivateFolder): string {
  const login = readToken(folder, 'token');
  if (login) return login.access_token;
  const had = readAnyToken(folder, 'token') !== undefined;
  throw loginNeeded(had ? 'your login has ended' : 'you are not logged in');
}

/**
 * Returns the stored token if it can be used; undefined if there is none, or if its file is
 * damaged.
 */
function freshToken(
  folder: PrivateFolder,
  { name, login }: { readonly name: string; readonly login: string },
): ClusterToken | undefined {
  const text = folder.read(name);
  if (text === undefined) return undefined;
  try {
    const stored = JSON.parse(text) as ClusterToken;
    const isFresh = Date.parse(stored.expires_at) - now() > RENEWAL_MARGIN;
    return isFresh && stored.login === login && typeof stored.token === 'string'
      ? stored
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Exchanges the token of the login for a token of a cluster (RFC 8693), with a DPoP proof by the
 * key of this machine. If the server requires a touch of the security key, the user logs in again,
 * and the new token is exchanged.
 */
async function exchange(
  context: CommandContext,
  request: { readonly server: string; readonly folder: PrivateFolder; readonly resource: string },
): Promise<Omit<ClusterToken, 'login'>> {
  const { server, folder, resource } = request;
  const asked = now();
  const client = await context.pluginClient();
  const send = () =>
    client.form('/oauth/token', {
      grant_type: EXCHANGE,
      client_id: 'svc-cli',
      subject_token: loginOf(folder),
      subject_token_type: ACCESS_TOKEN,
      resource,
    });
  const first = await send();
  const answer = (await client.stepUp(first)) ? await send() : first;
  const { host } = new URL(server);
  if (codeOf(answer) === 'invalid_target') {
    throw new CliFailure(
      `you are not assigned to a cluster ${resource} at ${host}`,
      `ask an admin of your organization; ${reachPage(server)} lists the clusters that you reach`,
      STATUS.refused,
    );
  }
  if (codeOf(answer) === 'access_denied') {
    const message = detailOf(answer) ?? `${host} refused the cluster ${resource}`;
    throw new CliFailure(message, 'run: svc login', STATUS.refused);
  }
  // The request has no fault, so these errors mean that the server refuses the login itself.
  if (['invalid_request', 'invalid_grant'].includes(codeOf(answer) ?? '')) {
    if (/scope/.test(detailOf(answer) ?? '')) throw loginNeeded('this login has no credentials');
    throw loginNeeded(`${host} has ended your login or removed your access`);
  }
  const { access_token: token, expires_in: seconds } = documentOf(accepted(answer)) as {
    access_token: string;
    expires_in: number;
  };
  return { token, expires_at: wholeSeconds(asked + seconds * 1000) };
}

/** Formats a time for `kubectl` (RFC 3339), without fractions of a second. */
function wholeSeconds(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
}

function loginNeeded(message: string): CliFailure {
  return new CliFailure(message, 'run: svc login', STATUS.notLoggedIn);
}
