import { z } from 'zod';
import type { OwnSession } from '#domain/sessions/session.js';

/** A session in the JSON of `/v1/sessions`. */
export const SESSION_JSON = z
  .object({
    id: z.string().describe('The id of the session.'),
    device: z
      .string()
      .nullable()
      .meta({ description: 'The `User-Agent` of the request that opened it.' }),
    address: z.string().nullable().describe('The IP address of that request.'),
    client: z
      .object({
        client_id: z.string().describe('The `client_id` of the client.'),
        name: z.string().nullable().describe('Its name.'),
      })
      .nullable()
      .meta({ description: 'The client that owns this session; null for a session of a browser.' }),
    hardware_verified: z.boolean().describe('True if a security key verified it.'),
    created_at: z.iso.datetime().describe('The time at which it was opened.'),
    expires_at: z.iso.datetime().describe('The time at which it ends.'),
    current: z.boolean().meta({ description: 'True for the session of this request.' }),
  })
  .meta({ id: 'Session', description: 'A session of the user.' });

/** The sessions of a user in the JSON of the API. */
export const SESSIONS_JSON = z
  .object({ sessions: z.array(SESSION_JSON).describe('The sessions.') })
  .describe('The sessions of the user.');
/** The type of a session in the JSON of `/v1/sessions`, by which the compiler checks answers. */
export type SessionJson = z.output<typeof SESSION_JSON>;

/**
 * Renders a session as JSON, and marks the session of this request as `current`.
 *
 * @param currentId the id of the session of this request
 */
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
