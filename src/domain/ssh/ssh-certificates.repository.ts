import { isDeepStrictEqual } from 'node:util';
import {
  AUDIT_COLUMNS,
  auditOfUser,
  auditValues,
  type RequestOfUser,
} from '#domain/access/issuance/audit-of-user.repository.js';
import { ISSUED } from '#domain/access/issuance/issuance-statement.repository.js';
import { IssuanceKind, type OutcomeRow } from '#domain/access/issuance/issuance.repository.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { KeyAttestation } from './hardware-keys/attested-keys.repository.js';

/** The record of a certificate, which is written before the certificate is signed. */
export interface SshCertificateRequest extends RequestOfUser {
  readonly sessionId: string;
  readonly userId: string;
  /** The address that the certificate names. The user must still have it. */
  readonly email: string;
  readonly keyId: string;
  /** Fingerprint of the key to certify. */
  readonly keyFingerprint: string;
  readonly caFingerprint: string;
  /**
   * True if the key claims to live in a security key. Only then is the record of attested keys
   * read.
   */
  readonly isSecurityKey: boolean;
  /** True if only an attested key is certified. */
  readonly attestationRequired: boolean;
  /** The attestation that came with this request, verified. */
  readonly attestation: KeyAttestation | undefined;
  /**
   * The domain of the organization that has the user names. If it is undefined, the only
   * organization of the deployment has them.
   */
  readonly principalsDomain: string | undefined;
  /** The principals for a user of that organization. */
  readonly principals: readonly string[];
  /** The principals for every other user. An empty list denies the request. */
  readonly principalsElsewhere: readonly string[];
  /**
   * The validity in seconds from now; undefined for the rest of the session. The session always
   * ends it.
   */
  readonly ttlSeconds: number | undefined;
}

/** A certificate that is on record and may be signed. */
export interface RecordedCertificate {
  readonly serial: bigint;
  readonly principals: readonly string[];
  readonly validAfter: Date;
  readonly validBefore: Date;
  /** The attestation of the key, from this request or an earlier one. */
  readonly attestation: KeyAttestation | undefined;
}

interface SshIssuanceRow extends OutcomeRow {
  readonly serial: string;
  readonly is_local: boolean;
  /** Seconds of the epoch. */
  readonly valid_after: number;
  readonly valid_before: number;
  readonly attestation: AttestationColumns | null;
}

/** An attestation in PostgreSQL, and in the details of the audit event. */
interface AttestationColumns {
  readonly aaguid: string | null;
  readonly model: string | null;
  readonly verify_required: boolean;
}

/**
 * The parts of the statement that most requests do not need. PostgreSQL would still plan them for
 * each request.
 */
interface CertificateSql {
  /** The attestation of the key, as jsonb. */
  readonly attestation: SqlFragment;
  /** The principals that the user gets. */
  readonly given: SqlFragment;
}

const FOR_EVERY_KEY: CertificateSql = {
  attestation: fragment`
    CASE WHEN k.is_security_key THEN coalesce(k.new_attestation, (
      SELECT jsonb_build_object('aaguid', h.aaguid, 'model', h.model, 'verify_required', h.verify_required)
      FROM ssh_attested_keys h WHERE h.user_id = a.id AND h.public_key = k.public_key)) END`,
  given: fragment`
    CASE WHEN a.org_id IS NOT NULL AND CASE WHEN k.principals_domain IS NULL
        THEN (SELECT count(*) = 1 FROM (SELECT FROM organizations LIMIT 2) AS first_two)
        ELSE EXISTS (SELECT FROM organization_domains d
                     WHERE d.org_id = a.org_id AND d.domain = k.principals_domain AND d.verified_at IS NOT NULL) END
      THEN k.principals ELSE k.principals_elsewhere END`,
};

/**
 * The parts for a key outside of security keys with two equal lists of principals. Such a key has
 * no attestation, and there is no choice between the lists.
 */
const FOR_PLAIN_KEY: CertificateSql = {
  attestation: fragment`NULL::jsonb`,
  given: fragment`k.principals`,
};

/**
 * An SSH user certificate. It needs a hardware-verified session of the user, whose e-mail address
 * is still the one in the certificate. If a de-provisioning commits second, it finds the
 * certificate and revokes it. If it commits first, there is no session to issue the certificate to.
 */
const certificateKind = ({ attestation, given }: CertificateSql) =>
  new IssuanceKind<SshCertificateRequest, RecordedCertificate, SshIssuanceRow>(
    {
      requires: {
        user: 'of the request',
        session: { of: 'request', where: fragment`s.level = 'verified'` },
      },
      columns: fragment`email text, key_id text, public_key text, ca_fingerprint text, is_security_key boolean,
      attestation_required boolean, new_attestation jsonb, principals text[], principals_elsewhere text[], principals_domain text, ttl int, ${AUDIT_COLUMNS}`,
      goneIf: fragment`a.email IS DISTINCT FROM k.email`,
      computed: fragment`
      ${attestation} AS attestation, ${given} AS given,
      date_trunc('second', now()) - interval '60 seconds' AS valid_after,
      date_trunc('second', least(s.expires_at, now() + make_interval(secs => k.ttl))) AS valid_before`,
      issuedIf: () =>
        fragment`cardinality(i.given) > 0 AND (i.attestation IS NOT NULL OR NOT i.attestation_required)`,
      drawn: { value: fragment`nextval('ssh_certificate_serial')`, column: fragment`serial` },
      written: fragment`
      INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, authenticator_id, key_id, principals, public_key,
                                    ca_fingerprint, valid_after, valid_before, attested, verify_required, aaguid)
      SELECT i.serial, i.user_id, i.org_id, i.session_id, i.session_key, i.key_id, i.given, i.public_key,
             i.ca_fingerprint, i.valid_after, i.valid_before, i.attestation IS NOT NULL,
             coalesce((i.attestation->>'verify_required')::boolean, false), (i.attestation->>'aaguid')::uuid
      ${ISSUED}`,
      audited: auditOfUser(
        fragment`'ssh_credential'`,
        fragment`jsonb_build_object('serial', i.serial::text, 'key_id', i.key_id, 'principals', i.given,
          'public_key', i.public_key, 'valid_before', i.valid_before)
          || coalesce(jsonb_build_object('attested', true) || i.attestation, '{}')`,
      ),
      returned: fragment`i.serial, i.given = i.principals AS is_local, extract(epoch FROM i.valid_after)::float8 AS valid_after,
      extract(epoch FROM i.valid_before)::float8 AS valid_before, i.attestation`,
    },
    askedOf,
    certificateOf,
  );

const SSH_CERTIFICATE = certificateKind(FOR_EVERY_KEY);
const SSH_CERTIFICATE_FOR_PLAIN_KEY = certificateKind(FOR_PLAIN_KEY);

/**
 * Returns the kind that decides about a request. For a request of the second kind, the first kind
 * would decide the same.
 */
export function certificateKindOf(request: SshCertificateRequest): typeof SSH_CERTIFICATE {
  const { isSecurityKey, principals, principalsElsewhere } = request;
  const isChoice = !isDeepStrictEqual(principals, principalsElsewhere);
  return isSecurityKey || isChoice ? SSH_CERTIFICATE : SSH_CERTIFICATE_FOR_PLAIN_KEY;
}

function askedOf(request: SshCertificateRequest): object {
  return {
    user_id: request.userId,
    session_id: request.sessionId,
    email: request.email,
    key_id: request.keyId,
    public_key: request.keyFingerprint,
    ca_fingerprint: request.caFingerprint,
    is_security_key: request.isSecurityKey,
    attestation_required: request.attestationRequired,
    new_attestation: request.attestation && columnsOf(request.attestation),
    principals: request.principals,
    principals_elsewhere: request.principalsElsewhere,
    principals_domain: request.principalsDomain ?? null,
    ttl: request.ttlSeconds,
    ...auditValues(request),
  };
}

function certificateOf(
  row: SshIssuanceRow,
  { principals, principalsElsewhere }: SshCertificateRequest,
): RecordedCertificate {
  return {
    serial: BigInt(row.serial),
    principals: row.is_local ? principals : principalsElsewhere,
    validAfter: new Date(row.valid_after * 1000),
    validBefore: new Date(row.valid_before * 1000),
    attestation: row.attestation === null ? undefined : attestationOf(row.attestation),
  };
}

function columnsOf({ aaguid, model, verifyRequired }: KeyAttestation): AttestationColumns {
  return { aaguid, model, verify_required: verifyRequired };
}

function attestationOf({ aaguid, model, verify_required }: AttestationColumns): KeyAttestation {
  return { aaguid, model, verifyRequired: verify_required };
}

/** Returns true if the deployment has several organizations. */
export async function hasSeveralOrganizations(tx: EntityManager): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`SELECT id FROM organizations LIMIT 2`;
  return found.length > 1;
}
