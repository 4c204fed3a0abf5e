import { artifactId, type Artifact } from '#domain/oauth/grants/artifact.js';
import { sqlStateOf } from '#platform/database/statements/faults.js';
import type { AdapterPayload } from '../protocol/library.js';

/** The SQLSTATE of a foreign key violation: the row that a new row refers to does not exist. */
const FOREIGN_KEY_VIOLATION = '23503';

/**
 * Converts a record of the OAuth library to a row of the domain layer. A waiting authorization
 * request (an interaction) is stored without a reference to its grant. The login for which it waits
 * ends the grants of the old session, and would otherwise end the request too. Each step of the
 * request looks the session up again.
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

/** Removes the id from a record. The id is a secret, of which only the hash is stored. */
export function withoutId({ jti: _secret, ...payload }: AdapterPayload): AdapterPayload {
  return payload;
}

/** The outcome of a write that refers, by a foreign key, to a row that does not exist any more. */
export const GONE = { denial: 'gone' } as const;

/**
 * Returns `gone` if a write fails because a row to which it refers does not exist any more. The
 * account or client was just removed, or the grant was revoked.
 */
export async function orIfGone<T, Gone>(written: Promise<T>, gone: Gone): Promise<T | Gone> {
  try {
    return await written;
  } catch (error) {
    if (sqlStateOf(error) !== FOREIGN_KEY_VIOLATION) throw error;
    return gone;
  }
}
