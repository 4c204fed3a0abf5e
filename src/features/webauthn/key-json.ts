import { z } from 'zod';
import type { Authenticator } from '#domain/keys/authenticators/authenticators.repository.js';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';

/** A key in the JSON of `/v1/keys`. */
export const KEY_JSON = z
  .object({
    id: z.string().describe('The id of the key.'),
    name: z.string().describe('The name that the user gave it.'),
    aaguid: z.string().nullable().describe('The AAGUID of its model.'),
    model: z.string().nullable().describe('The name of its model; null for an unknown one.'),
    created_at: z.iso.datetime().describe('The time of its enrollment.'),
    last_used_at: z.iso.datetime().nullable().describe('The time of its last use.'),
    current: z
      .boolean()
      .meta({ description: 'True when the session of the request was opened with this key.' }),
    user_verification: z
      .boolean()
      .describe('True if the key verified its user at the enrollment, for example by a PIN.'),
  })
  .meta({ id: 'SecurityKey', description: 'A security key of the user.' });

/** The security keys of a user in the JSON of the API. */
export const KEYS_JSON = z
  .object({ keys: z.array(KEY_JSON).describe('The keys.') })
  .describe('The security keys of the user.');
/** The type of a key as `/v1/keys` shows it, by which the compiler checks answers. */
export type KeyJson = z.output<typeof KEY_JSON>;

/**
 * Renders a key as JSON, and marks the key that opened the session of this request as `current`.
 * @param currentId the id of that key; undefined if no key opened the session
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
