import type { Authenticator } from '#domain/authenticators/authenticators.repository.js';
import { modelName } from '#domain/authenticators/attestation/model-policy.js';

/** A key as `/v1/keys` shows it. */
export interface KeyJson {
  readonly id: string;
  readonly name: string;
  readonly aaguid: string | null;
  readonly model: string | null;
  readonly created_at: string;
  readonly last_used_at: string | null;
  /** True when the session of the request was opened with this key. */
  readonly current: boolean;
  readonly user_verification: boolean;
}

/** Renders a key; `currentId` is the key of the session that asks. */
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
