import { readdirSync } from 'node:fs';
import { isMissing, type PrivateFolder } from '../files/private-folder.js';
import { now } from '../program/clock.js';

/**
 * The token of a login, as `token.json` holds it. Without the DPoP key of the same folder it opens
 * nothing.
 */
export interface StoredToken {
  readonly access_token: string;
  readonly scope: string;
  /** RFC 3339. */
  readonly expires_at: string;
  /** The owner of the token: for `svc status`, also without the network. */
  readonly user: { readonly id: string; readonly email?: string; readonly name?: string };
  /** The AAGUID of the security key that touched, and its model. */
  readonly key?: { readonly aaguid?: string; readonly model?: string };
}

/** The kinds of tokens: the one of every day, and the short one of an admin. */
export type TokenKind = (typeof TOKEN_KINDS)[number];
export const TOKEN_KINDS = ['admin-token', 'token'] as const;

/** Reads a token that is valid for five more seconds. */
export function readToken(folder: PrivateFolder, kind: TokenKind): StoredToken | undefined {
  const token = readAnyToken(folder, kind);
  return token && Date.parse(token.expires_at) - now() > 5_000 ? token : undefined;
}

/** Reads a token, expired or not. */
export function readAnyToken(folder: PrivateFolder, kind: TokenKind): StoredToken | undefined {
  return folder.readJson(`${kind}.json`) as StoredToken | undefined;
}

/**
 * The credentials that do not name their login. The server may have revoked them: a new login
 * fetches its own.
 */
const CERTIFICATES = ['ssh/certificate.pub', 'ssh/host-groups.json', 'ssh/sets', 'ssh/hosts'];
const WITHOUT_LOGIN = [...CERTIFICATES, 'git'];

/**
 * Stores a token. If another user was logged in, everything that came from that login goes first.
 */
export function writeToken(folder: PrivateFolder, kind: TokenKind, token: StoredToken): void {
  const isOfAnother = (one: TokenKind) => {
    const earlier = readAnyToken(folder, one);
    return earlier !== undefined && !isOfSameUser(earlier, token);
  };
  if (TOKEN_KINDS.some(isOfAnother)) removeCredentials(folder, true);
  else if (kind === 'token') WITHOUT_LOGIN.forEach((name) => folder.remove(name));
  folder.writeJson(`${kind}.json`, token);
}

/** Tells if two tokens are of one user. A damaged file names none. */
export function isOfSameUser(one: Partial<StoredToken>, other: StoredToken): boolean {
  return one.user?.id === other.user.id;
}

/**
 * The file that is no credential of a user: the key of the machine, which the token of a new login
 * needs.
 */
const KEY_OF_MACHINE = 'dpop-key.json';

/**
 * Removes every file of the server but the key pairs of SSH.
 *
 * @param keepsKey leaves the key of this machine, and the locks of running processes
 */
export function removeCredentials(folder: PrivateFolder, keepsKey = false): void {
  for (const name of namesIn(folder)) {
    const isKept = keepsKey && (name === KEY_OF_MACHINE || name.endsWith('.lock'));
    if (name !== 'ssh' && !isKept) folder.remove(name);
  }
  CERTIFICATES.forEach((name) => folder.remove(name));
}

function namesIn({ path }: PrivateFolder): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** Removes a token. */
export function removeToken(folder: PrivateFolder, kind: TokenKind): void {
  folder.remove(`${kind}.json`);
}
