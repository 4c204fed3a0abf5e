import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { doneOf, sql } from '#platform/database/statements/sql.js';
import type { Artifact } from './artifact.js';

/** What the audit log keeps of a token. */
export interface TokenAudit {
  readonly auditId: string;
  readonly origin: AuditOrigin;
  readonly details: object;
  /** Where a token exchange gave the token (RFC 8693): the row that says for which. */
  readonly exchange?: { readonly auditId: string; readonly details: object };
}

/** A token that is issued, and what the audit log keeps of it. */
export interface Issue {
  readonly token: Artifact;
  readonly audit: TokenAudit;
}

/** Tokens as they are issued: each with its audit row, and not one to whom nothing may be issued. */
@Injectable()
export class IssuedTokensRepository {
  /**
   * Records a token of a person, and its audit rows, or nothing: one statement. It takes the user row FOR SHARE, then that of
   * the client, then the session row, the order in which de-provisioning and the end of a client take them; whichever comes
   * second sees what the first did.
   *
   * @returns false when the account is inactive, or the client, the session or the grant is gone
   */
  async issueToPerson(
    tx: EntityManager,
    { model, id, payload, grantId, clientId, userId, expiresIn }: Artifact,
    { auditId, origin, details, exchange }: TokenAudit,
  ): Promise<boolean> {
    const issued = await sql<{ user_id: string }>(tx)`
      WITH account AS MATERIALIZED (
        SELECT id, org_id FROM users WHERE id = ${userId} AND active FOR SHARE
      ), client AS MATERIALIZED (
        SELECT c.id FROM (SELECT count(*) FROM account) first JOIN oauth_clients c ON c.id = ${clientId}
        FOR KEY SHARE OF c
      ), live AS MATERIALIZED (
        SELECT g.id AS grant_id, c.id AS client_id, a.id AS user_id, a.org_id
        FROM account a CROSS JOIN client c JOIN oauth_grants g ON g.user_id = a.id JOIN sessions s ON s.id = g.session_id
        WHERE g.id = ${grantId} AND s.expires_at > now()
        FOR SHARE OF s
      ), issued AS (
        INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, expires_at)
        SELECT ${model}, ${id}, ${JSON.stringify(payload)}::jsonb, grant_id, client_id, user_id,
               now() + make_interval(secs => ${expiresIn})
        FROM live
        RETURNING user_id
      )
      INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details)
      SELECT e.id, e.type, 'oauth', l.user_id, l.user_id, l.org_id, ${origin.requestId},
             ${origin.ip ?? null}, ${origin.userAgent ?? null}, e.details
      FROM live l JOIN issued i ON i.user_id = l.user_id
      CROSS JOIN (VALUES
        (${auditId}::uuid, 'oauth_token_issued', ${JSON.stringify(details)}::jsonb),
        (${exchange?.auditId ?? null}::uuid, 'token_exchange', ${JSON.stringify(exchange?.details ?? null)}::jsonb)
      ) AS e (id, type, details)
      WHERE e.id IS NOT NULL
      RETURNING subject_id AS user_id`;
    return issued.length > 0;
  }

  /**
   * {@link issueToPerson} for many at once. It waits for nobody: where somebody holds a lock on what is behind a token, that
   * one is not issued here.
   *
   * @returns whether each was issued; one that was not may still be, by itself
   */
  async issueToPeople(tx: EntityManager, issues: readonly Issue[]): Promise<boolean[]> {
    const issued = await sql<{ n: number }>(tx)`
      WITH asked AS MATERIALIZED (
        SELECT k.n, k.model, decode(k.id, 'hex') AS id, k.payload, decode(k.grant_id, 'hex') AS grant_id, k.client_id,
               k.user_id, k.expires_in, k.audit_id, k.request_id, k.ip, k.user_agent, k.details
        FROM jsonb_to_recordset(${askedOf(issues)}::jsonb) AS k (
          n int, model text, id text, payload jsonb, grant_id text, client_id text, user_id uuid, expires_in int,
          audit_id uuid, request_id text, ip inet, user_agent text, details jsonb)
      ), account AS MATERIALIZED (
        SELECT id, org_id FROM users WHERE id IN (SELECT user_id FROM asked) AND active FOR SHARE SKIP LOCKED
      ), live AS MATERIALIZED (
        SELECT g.id AS grant_id, a.id AS user_id, a.org_id
        FROM account a JOIN oauth_grants g ON g.user_id = a.id JOIN sessions s ON s.id = g.session_id
        WHERE g.id IN (SELECT grant_id FROM asked) AND s.expires_at > now()
        FOR SHARE OF s SKIP LOCKED FOR KEY SHARE OF g SKIP LOCKED
      ), client AS MATERIALIZED (
        SELECT id FROM oauth_clients WHERE id IN (SELECT client_id FROM asked) FOR KEY SHARE SKIP LOCKED
      ), free AS MATERIALIZED (
        SELECT k.n, l.org_id FROM asked k JOIN live l ON l.grant_id = k.grant_id AND l.user_id = k.user_id
        JOIN client c ON c.id = k.client_id
      ), issued AS (
        INSERT INTO oauth_artifacts (model, id, payload, grant_id, client_id, user_id, expires_at)
        SELECT k.model, k.id, k.payload, k.grant_id, k.client_id, k.user_id, now() + make_interval(secs => k.expires_in)
        FROM asked k JOIN free f ON f.n = k.n
      ), audited AS (
        INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip, user_agent, details)
        SELECT k.audit_id, 'oauth_token_issued', 'oauth', k.user_id, k.user_id, f.org_id, k.request_id, k.ip, k.user_agent,
               k.details
        FROM asked k JOIN free f ON f.n = k.n
      )
      SELECT n FROM free`;
    return doneOf(issues, issued);
  }

  /**
   * Records a token of a client's own, and its audit row: one statement. It takes the row of the client's owner first, as
   * de-provisioning does.
   *
   * @returns false when the client is gone, or its owner is inactive or may be issued nothing under their address
   */
  async issueToClient(
    tx: EntityManager,
    { model, id, payload, clientId, expiresIn }: Artifact,
    { auditId, origin, details }: TokenAudit,
  ): Promise<boolean> {
    const issued = await sql<{ id: string }>(tx)`
      WITH owner AS MATERIALIZED (
        SELECT u.id FROM oauth_clients c JOIN users u ON u.id = c.owner_id
        WHERE c.id = ${clientId} AND u.active AND is_own_address(u.org_id, u.email) FOR SHARE OF u
      ), client AS MATERIALIZED (
        SELECT c.id, c.org_id FROM (SELECT count(*) FROM owner) first
        JOIN oauth_clients c ON c.id = ${clientId} AND (c.owner_id IS NULL OR c.owner_id IN (SELECT id FROM owner))
        FOR KEY SHARE OF c
      ), issued AS (
        INSERT INTO oauth_artifacts (model, id, payload, client_id, expires_at)
        SELECT ${model}, ${id}, ${JSON.stringify(payload)}::jsonb, id, now() + make_interval(secs => ${expiresIn})
        FROM client
        RETURNING client_id
      )
      INSERT INTO audit_events (id, type, class, org_id, request_id, ip, user_agent, details)
      SELECT ${auditId}, 'oauth_token_issued', 'oauth', c.org_id, ${origin.requestId}, ${origin.ip ?? null},
             ${origin.userAgent ?? null}, ${JSON.stringify(details)}::jsonb
      FROM client c JOIN issued i ON i.client_id = c.id
      RETURNING id`;
    return issued.length === 1;
  }

  /**
   * {@link issueToClient} for many at once, in the order they are asked for. It waits for nobody: where somebody holds a lock
   * on what is behind a token, that one is not issued here.
   *
   * @returns whether each was issued; one that was not may still be, by itself
   */
  async issueToClients(tx: EntityManager, issues: readonly Issue[]): Promise<boolean[]> {
    const issued = await sql<{ n: number }>(tx)`
      WITH asked AS MATERIALIZED (
        SELECT k.n, k.model, k.id, k.payload, k.client_id, k.expires_in, k.audit_id, k.request_id, k.ip, k.user_agent, k.details
        FROM jsonb_to_recordset(${askedOf(issues)}::jsonb) AS k (
          n int, model text, id text, payload jsonb, client_id text, expires_in int, audit_id uuid, request_id text, ip inet,
          user_agent text, details jsonb)
      ), owner AS MATERIALIZED (
        SELECT u.id FROM oauth_clients c JOIN users u ON u.id = c.owner_id
        WHERE c.id IN (SELECT client_id FROM asked) AND u.active AND is_own_address(u.org_id, u.email)
        FOR SHARE OF u SKIP LOCKED
      ), client AS MATERIALIZED (
        SELECT c.id, c.org_id FROM (SELECT count(*) FROM owner) first
        JOIN oauth_clients c ON c.id IN (SELECT client_id FROM asked)
          AND (c.owner_id IS NULL OR c.owner_id IN (SELECT id FROM owner))
        FOR KEY SHARE OF c SKIP LOCKED
      ), issued AS (
        INSERT INTO oauth_artifacts (model, id, payload, client_id, expires_at)
        SELECT k.model, decode(k.id, 'hex'), k.payload, c.id, now() + make_interval(secs => k.expires_in)
        FROM asked k JOIN client c ON c.id = k.client_id
      ), audited AS (
        INSERT INTO audit_events (id, type, class, org_id, request_id, ip, user_agent, details)
        SELECT k.audit_id, 'oauth_token_issued', 'oauth', c.org_id, k.request_id, k.ip, k.user_agent, k.details
        FROM asked k JOIN client c ON c.id = k.client_id
      )
      SELECT k.n FROM asked k JOIN client c ON c.id = k.client_id`;
    return doneOf(issues, issued);
  }
}

/** What is to be issued, as PostgreSQL reads it. */
function askedOf(issues: readonly Issue[]): string {
  return JSON.stringify(
    issues.map(({ token, audit: { auditId, origin, details } }, n) => ({
      n,
      model: token.model,
      id: token.id.toString('hex'),
      payload: token.payload,
      grant_id: token.grantId?.toString('hex'),
      client_id: token.clientId,
      user_id: token.userId,
      expires_in: token.expiresIn,
      audit_id: auditId,
      request_id: origin.requestId,
      ip: origin.ip,
      user_agent: origin.userAgent,
      details,
    })),
  );
}
