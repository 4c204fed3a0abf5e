import type { ClientApplication } from '#domain/grants/clients/applications.repository.js';
import type { ClientSecret } from '#domain/grants/clients/clients.repository.js';
import type { Registration } from './registration/registration.js';
import { registrationOf } from './registration/registration-metadata.js';

/** An application in the API: its registration with all defaults, its owner and its dates. */
export interface ApplicationJson extends Registration {
  readonly client_id: string;
  readonly owner_id: string;
  readonly org_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** The day of the last use. */
  readonly last_used_at: string;
}

/** Converts an application to JSON. */
export function applicationJson(application: ClientApplication): ApplicationJson {
  return {
    client_id: application.id,
    ...registrationOf(application.metadata),
    owner_id: application.ownerId,
    org_id: application.orgId,
    created_at: application.createdAt.toISOString(),
    updated_at: application.updatedAt.toISOString(),
    last_used_at: application.lastUsedAt.toISOString(),
  };
}

/** A secret in the API, without its value. */
export interface SecretJson {
  readonly id: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

/** Converts a secret to JSON. */
export function secretJson({ id, createdAt, expiresAt }: ClientSecret): SecretJson {
  return {
    id,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
  };
}
