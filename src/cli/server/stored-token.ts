import type { PrivateFolder } from '../files/private-folder.js';
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
export type TokenKind = 'token' | 'admin-token';

/** Reads a token that is valid for five more seconds. */
export function readToken(folder: PrivateFolder, kind: TokenKind): StoredToken | undefined {
  const token = readAnyToken(folder, kind);
  return token && Date.parse(token.expires_at) - now() > 5_000 ? token : undefined;
}

/** Reads a token, expired or not. */
export function readAnyToken(folder: PrivateFolder, kind: TokenKind): StoredToken | undefined {
  return folder.readJson(`${kind}.json`) as StoredToken | undefined;
}

/** Stores a token. */
export function writeToken(folder: PrivateFolder, kind: TokenKind, token: StoredToken): void {
  folder.writeJson(`${kind}.json`, token);
}

/** Removes a token. */
export function removeToken(folder: PrivateFolder, kind: TokenKind): void {
  folder.remove(`${kind}.json`);
}
