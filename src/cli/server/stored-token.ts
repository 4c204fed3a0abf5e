import { readdirSync } from 'node:fs';
import { isMissing, type PrivateFolder } from '../files/private-folder.js';
import { now } from '../program/clock.js';

/** The token of a login, as `token.json` holds it. Without the DPoP key of the same folder it opens nothing. */
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

/** Stores a token. Where another user was logged in, everything that came from that login goes first. */
export function writeToken(folder: PrivateFolder, kind: TokenKind, token: StoredToken): void {
  const isOfAnother = (one: TokenKind) => {
    const earlier = readAnyToken(folder, one);
    return earlier !== undefined && earlier.user.id !== token.user.id;
  };
  if (TOKEN_KINDS.some(isOfAnother)) removeCredentials(folder, true);
  folder.writeJson(`${kind}.json`, token);
}

/** The files that are no credentials of a user: the key of the machine, which the token of a new login needs. */
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
  folder.remove('ssh/certificate.pub');
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
