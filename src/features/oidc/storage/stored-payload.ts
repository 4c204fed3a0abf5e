import { artifactId, type Artifact } from '#domain/oauth/grants/artifact.js';
import { sqlStateOf } from '#platform/database/statements/faults.js';
import type { AdapterPayload } from '../protocol/library.js';

/** The SQLSTATE of a foreign key violation. */
const FOREIGN_KEY_VIOLATION = '23503';

/**
 * Converts a payload of the library to a row of the domain. A waiting authorization request does
 * not depend on a grant: a login that raises the level of the session ends the grants on it, and
 * the request goes on. Each of its steps looks the session up live.
 */
export function artifactOf(
  model: string,
  id: string,
  payload: AdapterPayload,
  expiresIn = 0,
): Artifact {
  const session = payload['session'] as { readonly accountId?: string } | undefined;
  return {
    model,
    id: artifactId(id),
    payload: withoutId(payload),
    grantId:
      payload.grantId === undefined || model === 'Interaction' ? null : artifactId(payload.grantId),
    clientId: payload.clientId ?? null,
    userId: payload.accountId ?? session?.accountId ?? null,
    userCode: payload.userCode ?? null,
    expiresIn,
  };
}

/** Removes the id from a payload: the id is the secret, and only its hash is stored. */
export function withoutId({ jti: _secret, ...payload }: AdapterPayload): AdapterPayload {
  return payload;
}

/** The outcome of a write whose parent row is gone. */
export const GONE = { denial: 'gone' } as const;

/**
 * Returns another value if a write fails because its parent row is gone: the account or client was
 * just removed, or the grant revoked.
 */
export async function orIfGone<T, Gone>(written: Promise<T>, gone: Gone): Promise<T | Gone> {
  try {
    return await written;
  } catch (error) {
    if (sqlStateOf(error) !== FOREIGN_KEY_VIOLATION) throw error;
    return gone;
  }
}
