import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import {
  EVERY_SCOPE,
  type LockedUser,
  type Revocable,
  type RevocationCause,
  type RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { sql } from '#platform/database/statements/sql.js';

/** What is to be recorded of a certificate before it is signed. */
export interface IssueRecord {
  readonly sessionId: string;
  readonly userId: string;
  /** The address the certificate will name; the user must still have it. */
  readonly email: string;
  readonly keyId: string;
  /** Fingerprint of the key to certify. */
  readonly publicKey: string;
  readonly caFingerprint: string;
  /** The principals if the deployment has one organization and it is the user's … */
  readonly principals: readonly string[];
  /** … and those everywhere else. None refuses. */
  readonly principalsElsewhere: readonly string[];
  /** Seconds from now; undefined for the rest of the session, which always ends it. */
  readonly ttlSeconds: number | undefined;
  readonly auditId: string;
  readonly origin: AuditOrigin;
}

/** A certificate that is on record and may be signed. */
export interface RecordedIssue {
  readonly serial: bigint;
  readonly principals: readonly string[];
  readonly validAfter: Date;
  readonly validBefore: Date;
}

/** Why nothing was recorded. */
export type IssueRefusal =
  'session_gone' | 'account_inactive' | 'domain_not_owned' | 'no_principal';

interface IssueRow {
  active: boolean;
  domain_owned: boolean;
  serial: string | null;
  principals: string[];
  valid_after: Date;
  valid_before: Date;
}

/** How many certificates one statement revokes: so few that it ends long before its time limit. */
const BATCH = 5000;

/** Every certificate issued: the rows outlive the user, whose certificates stay revocable. */
@Injectable()
export class SshCertificatesRepository implements Revocable {
  readonly revocationOrder = 20;
  readonly revocationScopes = EVERY_SCOPE;

  /**
   * Records an issuance and its audit event, or says why not: one statement, so also one transaction when it stands
   * alone. It takes the user row FOR SHARE, then the session row: the order in which de-provisioning takes them, so
   * the two never deadlock. Whichever comes second sees what the first did: the de-provisioning finds the certificate
   * and revokes it, or the issuance finds the session deleted and refuses. Nothing it decides on comes from a cache.
   */
  async recordIssue(tx: EntityManager, issue: IssueRecord): Promise<RecordedIssue | IssueRefusal> {
    const { origin } = issue;
    const [row] = await sql<IssueRow>(tx)`
      WITH account AS MATERIALIZED (
        SELECT id, org_id, email, active FROM users WHERE id = ${issue.userId} FOR SHARE
      ), live AS MATERIALIZED (
        SELECT s.id, s.expires_at FROM account a JOIN sessions s ON s.user_id = a.id
        WHERE s.id = ${issue.sessionId} AND s.level = 'verified' AND s.expires_at > now()
          AND a.email = ${issue.email}
        FOR SHARE OF s
      ), permit AS MATERIALIZED (
        SELECT a.id AS user_id, a.org_id, a.active, l.id AS session_id,
          (SELECT d.org_id FROM organization_domains d
           WHERE d.domain = split_part(a.email, '@', -1) AND d.verified_at IS NOT NULL
          ) IS NOT DISTINCT FROM a.org_id AS domain_owned, -- their organization's, or nobody's for who has none
          CASE WHEN a.org_id IS NOT NULL
              AND (SELECT count(*) = 1 FROM (SELECT FROM organizations LIMIT 2) AS first_two)
            THEN ${issue.principals}::text[] ELSE ${issue.principalsElsewhere}::text[]
          END AS principals,
          date_trunc('second', now()) - interval '60 seconds' AS valid_after,
          date_trunc('second', least(l.expires_at,
            now() + make_interval(secs => ${issue.ttlSeconds ?? null}))) AS valid_before
        FROM account a CROSS JOIN live l
      ), issued AS (
        INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, key_id, principals,
          public_key, ca_fingerprint, valid_after, valid_before)
        SELECT nextval('ssh_certificate_serial'), user_id, org_id, session_id,
          ${issue.keyId}, principals, ${issue.publicKey}, ${issue.caFingerprint}, valid_after, valid_before
        FROM permit WHERE active AND domain_owned AND cardinality(principals) > 0
        RETURNING serial, user_id, org_id, key_id, principals, public_key, valid_before
      ), audited AS (
        INSERT INTO audit_events (id, type, class, actor_id, subject_id, org_id, request_id, ip,
          user_agent, details)
        SELECT ${issue.auditId}, 'ssh_credential', 'oauth', user_id, user_id, org_id, ${origin.requestId},
          ${origin.ip ?? null}, ${origin.userAgent ?? null},
          jsonb_build_object('serial', serial::text, 'key_id', key_id, 'principals', principals,
            'public_key', public_key, 'valid_before', valid_before)
        FROM issued
      )
      SELECT p.active, p.domain_owned, p.principals, p.valid_after, p.valid_before, i.serial
      FROM permit p LEFT JOIN issued i ON true`;
    return row ? outcome(row) : 'session_gone';
  }

  /**
   * Marks as revoked what people without an organization still hold under a domain that an organization now owns;
   * returns how many.
   */
  async revokeOfOutsiders(
    tx: EntityManager,
    domain: string,
    { reason, revokedBy }: RevocationCause,
  ): Promise<number> {
    const revoked = await sql<{ serial: string }>(tx)`
      UPDATE ssh_certificates c
      SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
      FROM users u
      WHERE u.id = c.user_id AND u.org_id IS NULL AND split_part(u.email, '@', -1) = ${domain}
        AND c.revoked_at IS NULL AND c.valid_before > now()
      RETURNING c.serial`;
    return revoked.length;
  }

  /**
   * Revokes every certificate of a user that is not revoked yet, expired ones too; returns their number. It goes in batches by
   * serial, so that no number of certificates makes a statement exceed its time limit. The caller holds the row of the user:
   * nothing is issued meanwhile.
   */
  async revoke(
    tx: EntityManager,
    { id }: LockedUser,
    { reason, revokedBy }: RevocationCause,
  ): Promise<RevokedCounts> {
    let certificates = 0;
    let after = '-1';
    for (;;) {
      // Certificates that others revoke meanwhile do not count towards the limit: a short batch is the last one.
      const batch = await sql<{ serial: string }>(tx)`
        UPDATE ssh_certificates
        SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
        WHERE serial IN (
          SELECT serial FROM ssh_certificates
          WHERE user_id = ${id} AND revoked_at IS NULL AND serial > ${after}::bigint
          ORDER BY serial LIMIT ${BATCH} FOR UPDATE
        )
        RETURNING serial`;
      certificates += batch.length;
      if (batch.length < BATCH) return { certificates };
      after = String(batch.reduce((most, { serial }) => Math.max(most, Number(serial)), 0));
    }
  }
}

function outcome(row: IssueRow): RecordedIssue | IssueRefusal {
  if (!row.active) return 'account_inactive';
  if (!row.domain_owned) return 'domain_not_owned';
  if (row.serial === null) return 'no_principal';
  return {
    serial: BigInt(row.serial),
    principals: row.principals,
    validAfter: row.valid_after,
    validBefore: row.valid_before,
  };
}
