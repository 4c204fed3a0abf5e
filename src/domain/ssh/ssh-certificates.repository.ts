import { isDeepStrictEqual } from 'node:util';
import {
  AUDIT_COLUMNS,
  auditOfUser,
  auditValues,
  type RequestOfUser,
} from '#domain/access/issuance/audit-of-user.repository.js';
import { BY_GROUPS } from '#domain/access/reach/reach.repository.js';
import {
  ISSUED,
  type ConfirmingSql,
} from '#domain/access/issuance/issuance-statement.repository.js';
import { IssuanceKind, type OutcomeRow } from '#domain/access/issuance/issuance.repository.js';
import { fragment, joinedParts, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import type { CountedBucket } from '#platform/http/access/unconfirmed.js';
import { admittingSql } from '#platform/rate-limit/buckets/rate-limits.repository.js';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';
import {
  CHECKED_BY,
  columnsOfCheck,
  type CheckedToken,
  type TokenCheck,
} from '#domain/sessions/remembered/token-check.repository.js';
import { VALID_AFTER, validBefore } from './certificate-validity.repository.js';
import type { KeyAttestation } from './hardware-keys/attested-keys.repository.js';

/**
 * A request for a certificate, with the facts that are recorded before the certificate is signed.
 */
export interface SshCertificateRequest extends RequestOfUser {
  readonly sessionId: string;
  readonly userId: string;
  /**
   * The e-mail address that the certificate names. Nothing is issued if the user has another
   * address by now.
   */
  readonly email: string;
  readonly keyId: string;
  /** The fingerprint (`SHA256:…`) of the public key to certify. */
  readonly keyFingerprint: string;
  readonly caFingerprint: string;
  /**
   * True if the key has a type for security keys. The statement looks for a recorded attestation
   * only for such a key.
   */
  readonly isSecurityKey: boolean;
  /**
   * True if the deployment certifies only keys whose attestation proves that they are inside a
   * security key.
   */
  readonly attestationRequired: boolean;
  /** The verified attestation of the key in this request; undefined if there is none. */
  readonly attestation: KeyAttestation | undefined;
  /**
   * The domain of the organization whose users get user names as principals. If it is undefined,
   * they are for the only organization of the deployment, or for none if there are several.
   */
  readonly principalsDomain: string | undefined;
  /**
   * The principals if the user belongs to the organization whose users get user names as
   * principals.
   */
  readonly principals: readonly string[];
  /**
   * The principals if the user belongs to another organization. If the list is empty, the request
   * is denied.
   */
  readonly principalsElsewhere: readonly string[];
  /**
   * The principals of groups of hosts that the client asks for; undefined for those of all groups
   * that admit the user.
   */
  readonly groupPrincipals: readonly string[] | undefined;
  /**
   * The host that the client connects to. If it is set, the certificate gets only principals of
   * groups of hosts whose patterns match it.
   */
  readonly host: string | undefined;
  /**
   * The validity in seconds from now; undefined for the length of the session. The certificate
   * expires with the session at the latest.
   */
  readonly ttlSeconds: number | undefined;
  /**
   * The number of certificates of the user on record and not revoked at which a further one is
   * denied; undefined for a request that does not count them.
   */
  readonly mostOnRecord: number | undefined;
  /**
   * The caller and the rate limit, which the statement that issues must check as well; undefined if
   * both were checked before.
   */
  readonly unchecked?: UncheckedCaller | undefined;
}

/** A caller whose token and rate limit no statement has checked yet. */
export interface UncheckedCaller {
  readonly token: TokenCheck;
  /** The bucket in which the request counts; undefined if it is already counted. */
  readonly bucket: CountedBucket | undefined;
}

/** A group of hosts that admits the user. */
export interface ReachedHostGroup {
  readonly name: string;
  /** The patterns of the hosts of the group, in the syntax of ssh_config. */
  readonly hosts: readonly string[];
  /**
   * True if the certificate contains the principals of the group; false if the session does not
   * meet the conditions of the group now.
   */
  readonly carried: boolean;
}

/** A certificate that the database has recorded, so that it may be signed. */
export interface RecordedCertificate {
  readonly serial: bigint;
  readonly principals: readonly string[];
  readonly validAfter: Date;
  readonly validBefore: Date;
  /** The attestation of the key, from this request or an earlier one. */
  readonly attestation: KeyAttestation | undefined;
  /**
   * The groups of hosts that admit the user, for a request without a host; undefined if the
   * organization has none.
   */
  readonly hostGroups: readonly ReachedHostGroup[] | undefined;
  /**
   * True if a group of hosts admits the user and is left out, and a newer touch of the security key
   * would add it. False for a request that names its principals.
   */
  readonly touchNeeded: boolean;
}

/**
 * The row that the statement returns about a request. For an unchecked caller it has the facts
 * about the token, and the debt of the bucket in milliseconds. If the bucket did not admit the
 * request, there is no row.
 */
export interface SshIssuanceRow extends OutcomeRow, CheckedToken {
  readonly debt?: number;
  readonly serial: string;
  readonly is_local: boolean;
  /** The principals of groups of hosts; null if the certificate has none. */
  readonly of_groups?: readonly string[] | null;
  readonly host_groups?: readonly ReachedHostGroup[] | null;
  readonly touch_needed?: true | null;
  /** The beginning of the validity, in seconds since 1970. */
  readonly valid_after: number;
  readonly valid_before: number;
  readonly attestation?: AttestationColumns | null;
}

/** An attestation with the names of its columns, which the details of the audit event also have. */
interface AttestationColumns {
  readonly aaguid: string | null;
  readonly model: string | null;
  readonly verify_required: boolean;
}

/**
 * The parts of the issuing statement that are costly and that most requests do not need. Most
 * requests use a statement with fewer parts and columns, because PostgreSQL prepares every part of
 * a statement for each run.
 */
interface KeySql {
  /** The columns of a request that only the SQL of this interface reads. */
  readonly columns: Readonly<Record<string, string>>;
  /** The column `attestation` of the decided request: the attestation of the key, as jsonb. */
  readonly attestation?: SqlFragment;
  /** The principals that the certificate gets besides those of groups of hosts. */
  readonly given: SqlFragment;
  /**
   * The SQL condition that the key may be certified: it has an attestation, or the deployment
   * demands none.
   */
  readonly isAttested: SqlFragment;
  /** The values of the columns `attested`, `verify_required` and `aaguid` of the certificate. */
  readonly recorded: SqlFragment;
  /** Further details of the audit event, as jsonb. */
  readonly audited?: SqlFragment;
}

const FOR_EVERY_KEY: KeySql = {
  columns: {
    is_security_key: 'boolean',
    new_attestation: 'jsonb',
    principals_elsewhere: 'text[]',
    principals_domain: 'text',
  },
  attestation: fragment`
    CASE WHEN k.is_security_key THEN coalesce(k.new_attestation, (
      SELECT jsonb_build_object('aaguid', h.aaguid, 'model', h.model, 'verify_required', h.verify_required)
      FROM ssh_attested_keys h WHERE h.user_id = a.id AND h.public_key = k.public_key)) END AS attestation`,
  given: fragment`
    CASE WHEN a.org_id IS NOT NULL AND CASE WHEN k.principals_domain IS NULL
        THEN (SELECT count(*) = 1 FROM (SELECT FROM organizations LIMIT 2) AS first_two)
        ELSE EXISTS (SELECT FROM organization_domains d
                     WHERE d.org_id = a.org_id AND d.domain = k.principals_domain AND d.verified_at IS NOT NULL) END
      THEN k.principals ELSE k.principals_elsewhere END`,
  isAttested: fragment`(i.attestation IS NOT NULL OR NOT i.attestation_required)`,
  recorded: fragment`i.attestation IS NOT NULL, coalesce((i.attestation->>'verify_required')::boolean, false),
    (i.attestation->>'aaguid')::uuid`,
  audited: fragment`coalesce(jsonb_build_object('attested', true) || i.attestation, '{}')`,
};

/**
 * The parts of the statement for a plain SSH key, which is not inside a security key, if
 * `principals` and `principals_elsewhere` are equal. The statement is then shorter, because such a
 * key has no attestation, and the organization of the user makes no difference to the principals.
 */
const FOR_PLAIN_KEY: KeySql = {
  columns: {},
  given: fragment`k.principals`,
  isAttested: fragment`NOT i.attestation_required`,
  recorded: fragment`false, false, NULL`,
};

/**
 * The SQL condition that a decided request `i` gets at least one principal and, if it names
 * principals, each of them. So a client that names principals never gets fewer without an error.
 */
const IS_NAMED = fragment`(
  i.names IS NULL AND cardinality(i.given) + cardinality(i.of_groups) > 0
  OR i.names <@ i.of_groups AND (cardinality(i.given) > 0 OR cardinality(i.principals) = 0))`;

/** The most principals of a certificate, because OpenSSH refuses a certificate with more. */
const MOST = fragment`256`;

/**
 * The denial of a further certificate if the user has too many on record (`most_on_record`).
 * `OFFSET` ends the count at the limit. The order makes PostgreSQL read the index of the user's
 * certificates, and not the whole table.
 */
const TOO_MANY_ON_RECORD = fragment`
    WHEN k.most_on_record IS NOT NULL AND EXISTS (
      SELECT FROM ssh_certificates m WHERE m.user_id = k.user_id AND m.revoked_at IS NULL
      ORDER BY m.serial LIMIT 1 OFFSET k.most_on_record - 1) THEN 'too_many'`;

/** The parts of the statement that are about groups of hosts. */
interface HostsSql {
  readonly requires: { readonly reach?: 'hosts' };
  /** The columns of a request that only the SQL of this interface reads. */
  readonly columns: Readonly<Record<string, string>>;
  readonly denials: SqlFragment;
  /**
   * The columns `of_groups`, `host_groups`, `carried`, `carried_names` and `touch_needed`: the
   * principals and groups that the certificate may get, and if another touch would add one.
   */
  readonly computed?: SqlFragment;
  /** The condition that the certificate gets principals, and those that the request names. */
  readonly isNamed: SqlFragment;
  /**
   * The SQL of all principals of the certificate: `i.given`, and those of groups of hosts if there
   * are any.
   */
  readonly principals: SqlFragment;
  /**
   * The time at which a touch of the security key becomes too old for one of the groups of hosts in
   * the certificate. The certificate expires then at the latest.
   */
  readonly ends: SqlFragment;
  readonly alsoWritten?: SqlFragment;
  /** Further details of the audit event, as jsonb. */
  readonly audited?: SqlFragment;
  readonly returned?: SqlFragment;
}

const withHosts = ({ given }: KeySql): HostsSql => ({
  requires: { reach: 'hosts' },
  columns: { names: 'text[]', host: 'text' },
  denials: fragment`
    WHEN cardinality(r.principals) > ${MOST} - cardinality(k.principals)
      AND cardinality(r.principals) > ${MOST} - cardinality(${given}) THEN 'too_many_principals'`,
  computed: fragment`r.principals AS of_groups, r.listed AS host_groups, r.carried, r.carried_names,
    CASE WHEN r.has_unmet AND k.names IS NULL THEN waits_for_touch(a.org_id, a.id, s.touches, k.host) END AS touch_needed`,
  isNamed: IS_NAMED,
  principals: fragment`i.given || i.of_groups`,
  ends: fragment`r.ends`,
  alsoWritten: fragment`
    INSERT INTO ssh_certificate_groups (target_id, serial, user_id, session_id, principals, valid_before)
    SELECT c.target_id, i.serial, i.user_id, i.session_id, c.principals, i.valid_before
    FROM decided i CROSS JOIN LATERAL unnest(i.carried) c WHERE i.is_issued`,
  audited: fragment`CASE WHEN i.carried_names IS NULL THEN '{}' ELSE jsonb_build_object('host_groups', i.carried_names) END`,
  // JSON takes less time to read than an array of PostgreSQL.
  returned: fragment`to_jsonb(nullif(i.of_groups, '{}')) AS of_groups, CASE WHEN i.host IS NULL THEN i.host_groups END AS host_groups,
    nullif(i.touch_needed, false) AS touch_needed`,
});

/**
 * The parts of the statement for a person whom no group of hosts admits. If a group admits the
 * person after all, also one whose conditions are not met, the request is denied with `changed`,
 * and the full statement then decides. A rule that changes meanwhile makes no difference, because
 * the certificate has no principal of a group. The order makes PostgreSQL read the memberships of
 * the person from an index, and not all of them, also without statistics. `OFFSET 0` keeps it from
 * hashing the groups of hosts of all organizations.
 */
const WITHOUT_HOSTS: HostsSql = {
  requires: {},
  columns: {},
  denials: fragment`
    WHEN EXISTS (SELECT FROM access_targets h WHERE h.kind = 'host_group' AND h.access = 'everyone' AND h.org_id = a.org_id OFFSET 0)
      OR EXISTS (SELECT FROM access_assignments x WHERE x.of_hosts AND x.user_id = a.id OFFSET 0)
      OR ${BY_GROUPS} AND EXISTS (
        SELECT FROM group_members m CROSS JOIN LATERAL (
          SELECT FROM access_assignments x WHERE x.of_hosts AND x.group_id = m.group_id OFFSET 0) y
        WHERE m.user_id = a.id ORDER BY m.group_id OFFSET 0) THEN 'changed'`,
  isNamed: fragment`cardinality(i.given) > 0`,
  principals: fragment`i.given`,
  ends: fragment`NULL::timestamptz`,
  returned: fragment`
    CASE WHEN EXISTS (SELECT FROM access_targets h WHERE h.kind = 'host_group' AND h.org_id = i.org_id OFFSET 0) THEN '[]'::jsonb END AS host_groups`,
};

/** The columns of a request that every statement reads. */
const COLUMNS = {
  user_id: 'uuid',
  session_id: 'uuid',
  email: 'text',
  key_id: 'text',
  public_key: 'text',
  ca_fingerprint: 'text',
  attestation_required: 'boolean',
  principals: 'text[]',
  ttl: 'int',
  most_on_record: 'int',
  ...AUDIT_COLUMNS,
} as const;

/**
 * Returns the statement that issues SSH user certificates. A certificate needs a session that a
 * security key verified, and the user must still have the e-mail address in the certificate. A
 * transaction that ends the access of the user and commits later finds the certificate and revokes
 * it. If it commits earlier, the session is gone and no certificate is issued.
 */
const certificateKind = (key: KeySql, hosts: HostsSql, confirming?: ConfirmingSql) =>
  new IssuanceKind<SshCertificateRequest, RecordedCertificate, SshIssuanceRow>(
    {
      requires: {
        user: 'of the request',
        session: { of: 'request', where: fragment`s.level = 'verified'` },
        ...hosts.requires,
      },
      columns: { ...COLUMNS, ...key.columns, ...hosts.columns },
      // A certificate ends at a whole second, so a session of which less is left gets none.
      goneIf: fragment`a.email IS DISTINCT FROM k.email OR date_trunc('second', s.expires_at) <= now()`,
      denials: fragment`${hosts.denials} ${TOO_MANY_ON_RECORD}`,
      computed: list([
        fragment`${key.given} AS given, ${VALID_AFTER} AS valid_after, ${validBefore(hosts.ends)} AS valid_before`,
        key.attestation,
        hosts.computed,
      ]),
      issuedIf: () => fragment`${hosts.isNamed} AND ${key.isAttested}`,
      drawn: { value: fragment`nextval('ssh_certificate_serial')`, column: fragment`serial` },
      written: fragment`
      INSERT INTO ssh_certificates (serial, user_id, org_id, session_id, authenticator_id, key_id, principals, public_key,
                                    ca_fingerprint, valid_after, valid_before, attested, verify_required, aaguid)
      SELECT i.serial, i.user_id, i.org_id, i.session_id, i.session_key, i.key_id, ${hosts.principals}, i.public_key,
             i.ca_fingerprint, i.valid_after, i.valid_before, ${key.recorded}
      ${ISSUED}`,
      ...(hosts.alsoWritten && { alsoWritten: hosts.alsoWritten }),
      audited: auditOfUser(fragment`'ssh_credential'`, detailsOf(key, hosts)),
      returned: list([
        fragment`i.serial, i.given = i.principals AS is_local, extract(epoch FROM i.valid_after)::float8 AS valid_after,
        extract(epoch FROM i.valid_before)::float8 AS valid_before`,
        key.attestation && fragment`i.attestation`,
        hosts.returned,
      ]),
      ...(confirming && { confirming }),
    },
    askedOf,
    certificateOf,
  );

/** Returns the details of the audit event of a certificate, as jsonb. */
function detailsOf(key: KeySql, hosts: HostsSql): SqlFragment {
  const ofAll = fragment`jsonb_build_object('serial', i.serial::text, 'key_id', i.key_id, 'principals', ${hosts.principals},
    'public_key', i.public_key, 'valid_before', i.valid_before)`;
  return list([ofAll, hosts.audited, key.audited], ' || ');
}

/** Joins the parts that are not undefined, with `between` as the separator. */
function list(parts: readonly (SqlFragment | undefined)[], between = ', '): SqlFragment {
  return joinedParts(parts, between) ?? fragment``;
}

const SSH_CERTIFICATE = certificateKind(FOR_EVERY_KEY, withHosts(FOR_EVERY_KEY));
const SSH_CERTIFICATE_FOR_PLAIN_KEY = certificateKind(FOR_PLAIN_KEY, withHosts(FOR_PLAIN_KEY));
const WITHOUT_GROUPS = certificateKind(FOR_EVERY_KEY, WITHOUT_HOSTS);
const WITHOUT_GROUPS_FOR_PLAIN_KEY = certificateKind(FOR_PLAIN_KEY, WITHOUT_HOSTS);

type CertificateKind = typeof SSH_CERTIFICATE;

/**
 * Returns the statement that decides about a request. For a key that is in no security key, it is a
 * shorter statement, which decides the same at a lower cost.
 */
export function certificateKindOf(request: SshCertificateRequest): CertificateKind {
  return isOfPlainKey(request) ? SSH_CERTIFICATE_FOR_PLAIN_KEY : SSH_CERTIFICATE;
}

/**
 * Returns a cheaper statement. It decides correctly about a person whom no group of hosts admits,
 * and denies the request of any other. Returns undefined if the request names a host or principals
 * of groups.
 */
export function kindWithoutGroups(request: SshCertificateRequest): CertificateKind | undefined {
  if (request.host !== undefined || request.groupPrincipals !== undefined) return undefined;
  return isOfPlainKey(request) ? WITHOUT_GROUPS_FOR_PLAIN_KEY : WITHOUT_GROUPS;
}

/** The statements for unchecked callers, by their parts. Each is made when it is needed first. */
const checkingKinds = new Map<string, CertificateKind>();

/**
 * Returns the statement that also checks the caller of a request and its rate limit.
 *
 * @param withGroups true if a group of hosts may admit the user, see {@link kindWithoutGroups}
 */
export function checkingKindOf(
  request: SshCertificateRequest,
  { token, bucket }: UncheckedCaller,
  withGroups: boolean,
): CertificateKind {
  const isShort = !withGroups && kindWithoutGroups(request) !== undefined;
  const isPlain = isOfPlainKey(request);
  const name = [token.kind, bucket?.tier, isShort, isPlain].join();
  let kind = checkingKinds.get(name);
  if (!kind) {
    const key = isPlain ? FOR_PLAIN_KEY : FOR_EVERY_KEY;
    kind = certificateKind(key, isShort ? WITHOUT_HOSTS : withHosts(key), {
      ...CHECKED_BY[token.kind],
      ...(bucket && { admitted: admittingSql(TIERS[bucket.tier]) }),
    });
    checkingKinds.set(name, kind);
  }
  return kind;
}

function isOfPlainKey({ isSecurityKey, principals, principalsElsewhere }: SshCertificateRequest) {
  return !isSecurityKey && isDeepStrictEqual(principals, principalsElsewhere);
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
    principals_domain: request.principalsDomain,
    names: request.groupPrincipals,
    host: request.host,
    ttl: request.ttlSeconds,
    most_on_record: request.mostOnRecord,
    ...(request.unchecked && {
      ...columnsOfCheck(request.unchecked.token),
      bucket: request.unchecked.bucket?.key,
    }),
    ...auditValues(request),
  };
}

function certificateOf(
  row: SshIssuanceRow,
  { principals, principalsElsewhere }: SshCertificateRequest,
): RecordedCertificate {
  return {
    serial: BigInt(row.serial),
    principals: [...(row.is_local ? principals : principalsElsewhere), ...(row.of_groups ?? [])],
    hostGroups: row.host_groups ?? undefined,
    touchNeeded: row.touch_needed === true,
    validAfter: new Date(row.valid_after * 1000),
    validBefore: new Date(row.valid_before * 1000),
    attestation: row.attestation ? attestationOf(row.attestation) : undefined,
  };
}

function columnsOf({ aaguid, model, verifyRequired }: KeyAttestation): AttestationColumns {
  return { aaguid, model, verify_required: verifyRequired };
}

function attestationOf({ aaguid, model, verify_required }: AttestationColumns): KeyAttestation {
  return { aaguid, model, verifyRequired: verify_required };
}

/**
 * Returns true if the deployment has several organizations, because user names alone are then
 * ambiguous.
 */
export async function hasSeveralOrganizations(tx: EntityManager): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`SELECT id FROM organizations LIMIT 2`;
  return found.length > 1;
}
