import { z } from 'zod';
import type { Authenticator } from '#domain/keys/authenticators/authenticators.repository.js';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';

/** A key in the JSON of `/v1/keys`. */
export const KEY_JSON = z
  .object({
    id: z.string(),
    name: z.string(),
    aaguid: z.string().nullable(),
    model: z.string().nullable(),
    created_at: z.iso.datetime(),
    last_used_at: z.iso.datetime().nullable(),
    current: z
      .boolean()
      .meta({ description: 'True when the session of the request was opened with this key.' }),
    user_verification: z.boolean(),
  })
  .meta({ id: 'SecurityKey' });
/** The type of a key as `/v1/keys` shows it. */
export type KeyJson = z.output<typeof KEY_JSON>;

/**
 * Renders a key as JSON.
 * @param currentId the id of the key with which the session of this request was opened
 */
export function keyJson(key: Authenticator, currentId: string | undefined): KeyJson {
  return {
    id: key.id,
    name: key.name,
    aaguid: key.aaguid,
    model: modelName(key.aaguid),
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    current: key.id === currentId,
    user_verification: key.userVerification,
  };
}
