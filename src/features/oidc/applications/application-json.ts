import type { ClientApplication } from '#domain/grants/clients/applications.repository.js';
import type { ClientSecret } from '#domain/grants/clients/clients.repository.js';
import type { Registration } from '#domain/applications/registration.js';
import { clusterNameOf } from './registration/cluster-registration.js';
import { registrationOf } from '#domain/applications/registration-metadata.js';

/** The owner and the dates of an application in the API. */
interface Ownership {
  readonly client_id: string;
  /** Null for a cluster, which belongs to the organization. */
  readonly owner_id: string | null;
  readonly org_id: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A client in the API: its registration with all defaults. */
interface ClientJson extends Ownership, Registration {
  /** The day of the last use. */
  readonly last_used_at: string;
}

/** A cluster in the API. */
interface ClusterJson extends Ownership {
  readonly name: string;
  readonly type: 'kubernetes';
  readonly resource: string;
}

/** An application in the API: a client or a cluster, with its owner and its dates. */
export type ApplicationJson = ClientJson | ClusterJson;

/** Converts an application to JSON. */
export function applicationJson(application: ClientApplication): ApplicationJson {
  const { resource } = application;
  const ownership = {
    owner_id: application.ownerId,
    org_id: application.orgId,
    created_at: application.createdAt.toISOString(),
    updated_at: application.updatedAt.toISOString(),
  };
  if (resource !== null) {
    const name = clusterNameOf(application);
    return { client_id: application.id, name, type: 'kubernetes', resource, ...ownership };
  }
  return {
    client_id: application.id,
    ...registrationOf(application.metadata),
    ...ownership,
    last_used_at: application.lastUsedAt.toISOString(),
  };
}

/** Returns the name and the type of an application, for the audit log. */
export function nameAndTypeOf(application: ClientApplication) {
  const { name, type } = applicationJson(application);
  return { name, type };
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
