import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { sql } from '#platform/database/statements/sql.js';

/** The most sessions of a user that a list shows: the newest. */
const MOST_SHOWN = 500;

/** A session as its own user sees it. */
export interface OwnSession {
  readonly id: string;
  /** A security key asserted in it. */
  readonly verified: boolean;
  /** The client that has this session for itself; null for one of a browser. */
  readonly client: { readonly id: string; readonly name: string | null } | null;
  /** Where it was opened from; null for one from before this was kept. */
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

interface Row {
  id: string;
  verified: boolean;
  client_id: string | null;
  client_name: string | null;
  ip: string | null;
  user_agent: string | null;
  created_at: Date;
  expires_at: Date;
}

/** The sessions of one user, for that user. */
@Injectable()
export class OwnSessionsRepository {
  /** The sessions of a user that are alive, the newest first. */
  async list(tx: EntityManager, userId: string): Promise<OwnSession[]> {
    const rows = await sql<Row>(tx)`
      SELECT s.id, s.level <> 'bootstrap' AS verified, s.client_id, c.metadata ->> 'client_name' AS client_name,
             host(s.ip) AS ip, s.user_agent, s.created_at, s.expires_at
      FROM sessions s LEFT JOIN oauth_clients c ON c.id = s.client_id
      WHERE s.user_id = ${userId} AND s.expires_at > now()
      ORDER BY s.created_at DESC, s.id DESC LIMIT ${MOST_SHOWN}`;
    return rows.map(ownSession);
  }

  /**
   * Ends a session of a user, and with its row every grant, code and token on it.
   *
   * @returns what it was; undefined where the user has no such session, or it was ended already
   */
  async end(tx: EntityManager, userId: string, id: string): Promise<OwnSession | undefined> {
    const [row] = await sql<Row>(tx)`
      DELETE FROM sessions WHERE id = ${id} AND user_id = ${userId} AND expires_at > now()
      RETURNING id, level <> 'bootstrap' AS verified, client_id, NULL AS client_name, host(ip) AS ip, user_agent,
                created_at, expires_at`;
    return row && ownSession(row);
  }
}

function ownSession(row: Row): OwnSession {
  return {
    id: row.id,
    verified: row.verified,
    client: row.client_id === null ? null : { id: row.client_id, name: row.client_name },
    ip: row.ip,
    userAgent: row.user_agent,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  };
}
