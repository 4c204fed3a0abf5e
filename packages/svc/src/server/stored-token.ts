import { readdirSync } from 'node:fs';
import { takeFromAgents } from '../agent/agents.js';
import { SIGN_PROGRAM } from '../files/places.js';
import { isMissing, type PrivateFolder } from '../files/private-folder.js';
import { now } from '../program/clock.js';

/**
 * The token of a login, as it is stored in `token.json`. It can only be used with the DPoP key in
 * the same folder.
 */
export interface StoredToken {
  readonly access_token: string;
  readonly scope: string;
  /** The time at which the token expires (RFC 3339). */
  readonly expires_at: string;
  /** The user of the token. It is stored so that `svc status` can show it without the network. */
  readonly user: { readonly id: string; readonly email?: string; readonly name?: string };
  /** The AAGUID and the model of the security key that was used for the login. */
  readonly key?: { readonly aaguid?: string; readonly model?: string };
}

/** The kinds of tokens: `token` for daily use, and the short-lived `admin-token` of an admin. */
export type TokenKind = (typeof TOKEN_KINDS)[number];
export const TOKEN_KINDS = ['admin-token', 'token'] as const;

/** Reads a token that is valid for at least five more seconds; undefined otherwise. */
export function readToken(folder: PrivateFolder, kind: TokenKind): StoredToken | undefined {
  const token = readAnyToken(folder, kind);
  return token && Date.parse(token.expires_at) - now() > 5_000 ? token : undefined;
}

/** Reads a token, whether it has expired or not; undefined if there is none. */
export function readAnyToken(folder: PrivateFolder, kind: TokenKind): StoredToken | undefined {
  return folder.readJson(`${kind}.json`) as StoredToken | undefined;
}

/**
 * The files with credentials that do not record the login from which they came. A new login removes
 * these files, because the server may have revoked the credentials, and fetches its own.
 */
const CERTIFICATES = [
  'ssh/id-cert.pub',
  'ssh/certificate.pub',
  'ssh/host-groups.json',
  'ssh/sets',
  'ssh/hosts',
];
const WITHOUT_LOGIN = [...CERTIFICATES, 'git'];

/**
 * Stores a token. If another user was logged in before, all credentials of that user are removed
 * first. A new `token` of the same user removes the certificates and git tokens of the earlier
 * login.
 */
export function writeToken(folder: PrivateFolder, kind: TokenKind, token: StoredToken): void {
  const isOfAnother = (one: TokenKind) => {
    const earlier = readAnyToken(folder, one);
    return earlier !== undefined && !isOfSameUser(earlier, token);
  };
  if (TOKEN_KINDS.some(isOfAnother)) removeCredentials(folder, true);
  else if (kind === 'token') {
    takeFromAgents(folder);
    WITHOUT_LOGIN.forEach((name) => folder.remove(name));
  }
  folder.writeJson(`${kind}.json`, token);
}

/**
 * Returns true if two tokens belong to the same user. A token in a damaged file belongs to no user.
 */
export function isOfSameUser(one: Partial<StoredToken>, other: StoredToken): boolean {
  return one.user?.id === other.user.id;
}

/**
 * The file with the DPoP key of the machine. It is kept at a new login: it is no credential of a
 * user, and the new token is bound to it.
 */
const KEY_OF_MACHINE = 'dpop-key.json';

/**
 * The names in the folder of a server that stay after a logout: the folder of SSH key pairs, and
 * the program that git runs to sign.
 */
const WITHOUT_CREDENTIALS: readonly string[] = ['ssh', SIGN_PROGRAM];

/**
 * Removes every file of the server except the key pairs of SSH and the program by which git signs.
 * Takes the key pairs out of agents.
 *
 * @param keepsKey true to keep the DPoP key of this machine, and the locks of running processes
 * @returns the sockets of the agents that may still hold a key pair (`takeFromAgents`)
 */
export function removeCredentials(folder: PrivateFolder, keepsKey = false): string[] {
  const holding = takeFromAgents(folder);
  for (const name of namesIn(folder)) {
    const isKept = keepsKey && (name === KEY_OF_MACHINE || name.endsWith('.lock'));
    if (!WITHOUT_CREDENTIALS.includes(name) && !isKept) folder.remove(name);
  }
  CERTIFICATES.forEach((name) => folder.remove(name));
  return holding;
}

function namesIn({ path }: PrivateFolder): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
