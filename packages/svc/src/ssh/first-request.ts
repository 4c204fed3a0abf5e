import { generateKeyPairSync } from 'node:crypto';
import { sshString } from '@svc/openssh';
import type { CommandContext } from '../command/command-context.js';
import type { PrivateFolder } from '../files/private-folder.js';
import { CliFailure, STATUS } from '../program/failure.js';
import type { ListedHosts } from '../reach/own-reach.js';
import { ServerRefusal, TouchNeeded } from '../server/server-client.js';
import { hostName, isHostOf } from './certificate-cache.js';
import { TOO_MANY_NAMES, type CertificateAnswer } from './renewal.js';
import { recordIssued } from './stored-certificate.js';

/**
 * The largest number of names of groups that surely fit into one certificate. OpenSSH reads 256
 * names, and two of these can be the e-mail address and the user name.
 */
const MOST_NAMES = 254;
/** The most groups of hosts for which the server is asked if it issues a certificate. */
const MOST_GROUPS = 10;
/**
 * The texts that replace a `*` in a pattern of hosts. The first letter of a text replaces a `?`.
 */
const FILLINGS = ['x', 'svc', 'host'] as const;

/**
 * Asks the server if it would issue a certificate for a host, or for all hosts. Returns undefined
 * if it would, and the code of the refusal otherwise.
 */
export type Trial = (host?: string) => Promise<string | undefined>;

/**
 * Returns the host for which to request the first certificate of a new hardware key; undefined for
 * a certificate for all hosts. The host need not exist.
 *
 * A host is named only if the names of all groups do not fit into one certificate. The list of
 * groups alone does not show that, because a certificate for all hosts leaves out a group whose
 * conditions are not met. A request for a host of such a group is refused.
 *
 * @param groups the groups of hosts that the server lists for the user
 * @throws CliFailure if the names do not fit, and no group gets a certificate either
 */
export async function hostOfFirstRequest(
  groups: readonly ListedHosts[],
  trial: Trial,
): Promise<string | undefined> {
  const names = groups.reduce((sum, { logins }) => sum + logins.length, 0);
  if (names <= MOST_NAMES || (await trial()) !== 'too_many_principals') return undefined;
  const hosts = groups
    .toSorted((a, b) => a.logins.length - b.logins.length)
    .flatMap((group) => hostOf(group) ?? []);
  for (const host of hosts.slice(0, MOST_GROUPS)) {
    if ((await trial(host)) === undefined) return host;
  }
  throw tooManyNames();
}

/** Returns the failure for a certificate with too many names. It says what the user can do. */
export function tooManyNames(cause?: unknown): CliFailure {
  const whatToDo = 'Choose the names that you log in by: svc setup ssh --sk --principal NAME';
  return new CliFailure(TOO_MANY_NAMES, whatToDo, STATUS.refused, { cause });
}

/** Returns the name of a host that the patterns of a group match; undefined if none is found. */
function hostOf({ hosts }: ListedHosts): string | undefined {
  return hosts
    .flatMap((pattern) =>
      FILLINGS.map((text) => pattern.replaceAll('*', text).replaceAll('?', text.charAt(0))),
    )
    .map(hostName)
    .find((name) => name !== undefined && isHostOf(hosts, name));
}

/**
 * Returns a {@link Trial} that requests a certificate for a key that nobody has. The key looks like
 * one in a security key, and the request contains no proof of that. A server that demands the proof
 * refuses for this reason last, so it issues nothing. Another server issues a certificate for a
 * minute, which is recorded as issued and is of no use. Neither needs a touch.
 */
export async function trialOf(context: CommandContext, folder: PrivateFolder): Promise<Trial> {
  const client = await context.client('token', { asksForTouch: false });
  const request = { public_key: publicKeyOfNobody(), ttl_seconds: 60 };
  return async (host) => {
    try {
      const answer = await client.post<CertificateAnswer>('/v1/credentials/ssh', {
        ...request,
        ...(host !== undefined && { host }),
      });
      recordIssued(folder, String(answer.certificate));
      return undefined;
    } catch (error) {
      if (error instanceof TouchNeeded) return 'insufficient_user_authentication';
      if (!(error instanceof ServerRefusal)) throw error;
      return error.code === 'hardware_ssh_key_required' ? undefined : (error.code ?? '');
    }
  };
}

/** Makes the line of a public key in a security key. Its private key is not kept. */
function publicKeyOfNobody(): string {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const type = 'sk-ssh-ed25519@openssh.com';
  const fields = [type, Buffer.from(x, 'base64url'), 'ssh:'].map((field) => sshString(field));
  return `${type} ${Buffer.concat(fields).toString('base64')}`;
}
