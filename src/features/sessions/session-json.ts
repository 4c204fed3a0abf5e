import type { OwnSession } from '#domain/sessions/session.js';

/** A session in the JSON of `/v1/sessions`. */
export interface SessionJson {
  readonly id: string;
  /** The `User-Agent` of the request that opened it. */
  readonly device: string | null;
  readonly address: string | null;
  /** The client that owns this session; null for a session of a browser. */
  readonly client: { readonly client_id: string; readonly name: string | null } | null;
  readonly hardware_verified: boolean;
  readonly created_at: string;
  readonly expires_at: string;
  /** True for the session of this request. */
  readonly current: boolean;
}

/** Renders a session. @param currentId the id of the session of this request */
export function sessionJson(session: OwnSession, currentId: string): SessionJson {
  const { client } = session;
  return {
    id: session.id,
    device: session.userAgent,
    address: session.ip,
    client: client && { client_id: client.id, name: client.name },
    hardware_verified: session.verified,
    created_at: session.createdAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    current: session.id === currentId,
  };
}
