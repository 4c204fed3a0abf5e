import { z } from 'zod';
import type { OwnSession } from '#domain/sessions/session.js';

/** A session in the JSON of `/v1/sessions`. */
export const SESSION_JSON = z
  .object({
    id: z.string(),
    device: z
      .string()
      .nullable()
      .meta({ description: 'The `User-Agent` of the request that opened it.' }),
    address: z.string().nullable(),
    client: z
      .object({ client_id: z.string(), name: z.string().nullable() })
      .nullable()
      .meta({ description: 'The client that owns this session; null for a session of a browser.' }),
    hardware_verified: z.boolean(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    current: z.boolean().meta({ description: 'True for the session of this request.' }),
  })
  .meta({ id: 'Session' });
/** The type of a session in the JSON of `/v1/sessions`. */
export type SessionJson = z.output<typeof SESSION_JSON>;

/** Renders a session as JSON. @param currentId the id of the session of this request */
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
