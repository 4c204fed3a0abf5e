import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordRefusedAccess } from '#domain/access/issuance/refused-access.repository.js';
import { refusedIssuance, type DeniedSession } from '#domain/access/issuance/refused-issuance.js';
import {
  Issuance,
  type Decided,
  type Denied,
  type Outcome,
} from '#domain/access/issuance/issuance.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { newUuid } from '#platform/clock/random.js';
import { isLockFault } from '#platform/database/statements/faults.js';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  CertificateAuthority,
  type UnsignedCertificate,
} from './authority/certificate-authority.service.js';
import { CertificateCounts } from './certificate-counts.js';
import { LONGEST_TTL } from './certificate-validity.repository.js';
import { principalsOf } from './principals.js';
import {
  isAttestedKey,
  recordAttestedKey,
  type KeyAttestation,
} from './hardware-keys/attested-keys.repository.js';
import { isSecurityKey } from './hardware-keys/key-attestation.js';
import {
  hasSeveralOrganizations,
  certificateKindOf,
  checkingKindOf,
  kindWithoutGroups,
  type ReachedHostGroup,
  type RecordedCertificate,
  type SshCertificateRequest,
  type SshIssuanceRow,
  type UncheckedCaller,
} from './ssh-certificates.repository.js';
import { unassignedPrincipals } from './unassigned-principals.repository.js';
import { revokeUnsigned } from './unsigned-certificate.repository.js';
import { readSubjectKey } from './hardware-keys/subject-key.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The session in which a client requests a certificate. A security key has verified the session.
 */
export interface IssuingSession {
  readonly sessionId: string;
  readonly userId: string;
  readonly email: string;
  readonly denied: DeniedSession;
}

/** A request of a client for a certificate. Fields that the client leaves out are undefined. */
export interface SshRequestedCertificate {
  /** The public key to certify, as a line of a `.pub` file. */
  readonly publicKey: string;
  /**
   * The principals that the client wants, among those that the user may have; by default all of
   * them.
   */
  readonly principals?: readonly string[] | undefined;
  /**
   * The validity that the client asks for, in seconds, a positive whole number. The certificate
   * expires with the session at the latest.
   */
  readonly ttlSeconds?: number | undefined;
  /**
   * The host that the client connects to. If it is set, the certificate gets only principals of
   * groups of hosts whose patterns match it.
   */
  readonly host?: string | undefined;
  /**
   * The verified proof that the private key is inside a security key; undefined if the request
   * contained none.
   */
  readonly attestation?: KeyAttestation | undefined;
}

/** A request for a certificate, with its session and the origin that the audit log records. */
export interface AskedCertificate {
  readonly session: IssuingSession;
  readonly request: SshRequestedCertificate;
  readonly origin: AuditOrigin;
}

/** A certificate before it is recorded: its key, and what the statement records. */
interface PreparedCertificate {
  readonly subject: ReturnType<typeof readSubjectKey>;
  readonly recorded: SshCertificateRequest;
}

/** A signed certificate that the database has recorded, with its fields. */
export interface IssuedCertificate {
  /** The certificate, as a line of a `-cert.pub` file. */
  readonly certificate: string;
  readonly serial: bigint;
  readonly keyId: string;
  readonly principals: readonly string[];
  /**
   * The beginning of the validity in whole seconds, because a certificate cannot contain fractions
   * of a second.
   */
  readonly validAfter: Date;
  readonly validBefore: Date;
  readonly caPublicKey: string;
  readonly hostGroups: readonly ReachedHostGroup[] | undefined;
  /** True if the certificate lacks a group of hosts, and a newer touch of the key would add it. */
  readonly touchNeeded: boolean;
  readonly attestation: KeyAttestation | undefined;
}

/**
 * The error for a certificate without any principal. Such a certificate must not be issued, because
 * some hosts accept a certificate with an empty list for every account (OpenSSH PROTOCOL.certkeys).
 */
const WITHHELD = ['principal_not_allowed', 'This account has no SSH principal.'] as const;

/**
 * The most users that a process remembers because a group of hosts admits them. If there are more,
 * it forgets all of them, so that its memory stays small.
 */
const MOST_REMEMBERED = 10_000;

/** The error if the client asks for a principal that the user may not have. */
const NOT_HELD = [
  'principal_not_allowed',
  'You do not hold all of these principals. Leave `principals` out to get all that you hold.',
] as const;

/**
 * The form of a principal for a group of hosts, `login@group:organization`. It has the name of the
 * Unix account on the host, the name of the group, and the id (UUID) of the organization.
 */
const OF_GROUP = /^[a-z_][a-z0-9_-]{0,31}@([a-z][a-z0-9-]{0,31}):[0-9a-f-]{36}$/;

/**
 * Issues SSH user certificates. It reads the key of the request, records the certificate, and then
 * signs it. Requests at the same time share the statement that records.
 */
@Injectable()
export class CertificateIssuance implements OnApplicationBootstrap {
  readonly #peopleWithGroups = new Set<string>();
  /** A test replaces it to lower the limit. */
  counts = new CertificateCounts();

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'ssh' | 'relyingParty'>,
    private readonly issuance: Issuance,
    private readonly authority: CertificateAuthority,
    private readonly manager: EntityManager,
  ) {}

  /**
   * Logs a warning if the setting asks for user names as principals but no certificate can have
   * one. This is so if there are several organizations, because two users of different
   * organizations may have the same user name. SVC_SSH_PRINCIPALS_DOMAIN must then name one
   * organization by its domain.
   */
  async onApplicationBootstrap(): Promise<void> {
    const { principals, principalsDomain } = this.config.ssh;
    if (!principals.has('username') || principalsDomain !== undefined) return;
    if (!(await hasSeveralOrganizations(this.manager))) return;
    new Logger('security').warn(
      'SVC_SSH_PRINCIPALS_DOMAIN: is required for username, since there are several organizations; no certificate has a user name until it names the domain of one',
    );
  }

  /**
   * Records a certificate and then signs it. The record comes first, because a certificate without
   * a record could not be revoked. If the signature fails, the recorded certificate is revoked.
   *
   * @throws DomainError `invalid_public_key`, `hardware_ssh_key_required`, `invalid_request`,
   *   `principal_not_allowed`, `too_many_principals`, `not_assigned`, `browser_required`,
   *   `insufficient_user_authentication`, `unauthenticated`, `account_inactive`, `issuance_refused`
   *   or `kms_unavailable`
   */
  async issue({ session, request, origin }: AskedCertificate): Promise<IssuedCertificate> {
    const prepared = this.#prepare({ session, request, origin });
    const outcome = await this.#record(prepared.recorded);
    if ('denial' in outcome) {
      const refused = await this.#recordRefusal(outcome, session, request, origin);
      throw refusedIssuance(refused, request.principals ? NOT_HELD : WITHHELD, session.denied);
    }
    return this.#complete(prepared, outcome.issued);
  }

  /**
   * Issues a certificate to a caller whose token and rate limit are not checked yet. The statement
   * that records the certificate checks both. A request with an attestation cannot be issued so,
   * nor one that the facts about the remembered caller would refuse, because they may have changed.
   *
   * @param note is called with the row of the statement, which tells what it has checked. It is
   *   undefined if the rate limit did not admit the request
   * @returns undefined if nothing was issued. Then {@link issue} decides, after the caller and its
   *   limit were checked
   * @throws DomainError `kms_unavailable`
   */
  async issueUnchecked(
    asked: AskedCertificate,
    unchecked: UncheckedCaller,
    note: (row: SshIssuanceRow | undefined) => void,
  ): Promise<IssuedCertificate | undefined> {
    const prepared = asked.request.attestation ? undefined : this.#prepareUnchecked(asked);
    if (!prepared) return undefined;
    const recorded = { ...prepared.recorded, unchecked };
    const { userId } = asked.session;
    const kind = checkingKindOf(recorded, unchecked, this.#peopleWithGroups.has(userId));
    const decided = await this.#decideUnlocked(kind, recorded);
    if (!decided) return undefined;
    const { outcome, row } = decided;
    note(row);
    if ('denial' in outcome) {
      if (outcome.denial === 'changed') this.#rememberGroups(userId);
      return undefined;
    }
    this.#forgetGroups(outcome.issued, recorded);
    return this.#complete(prepared, outcome.issued);
  }

  /**
   * Decides about a request of a caller who is not checked yet. Returns undefined if the statement
   * could not lock a row, such as that of the rate limit. The limit is then decided separately,
   * because this process decides about it alone if it must.
   */
  async #decideUnlocked(
    kind: ReturnType<typeof checkingKindOf>,
    request: SshCertificateRequest,
  ): Promise<Decided<RecordedCertificate, SshIssuanceRow> | undefined> {
    try {
      return await this.issuance.decideUnlocked(kind, request);
    } catch (error) {
      if (isLockFault(error)) return undefined;
      throw error;
    }
  }

  /**
   * Does the same as {@link #prepare} for a caller who is not checked yet. Returns undefined
   * instead of a refusal, because the caller may have another address by now, and so other
   * principals.
   */
  #prepareUnchecked(asked: AskedCertificate): PreparedCertificate | undefined {
    try {
      return this.#prepare(asked);
    } catch (error) {
      if (error instanceof DomainError) return undefined;
      throw error;
    }
  }

  /** Reads the key of a request, and prepares the record of its certificate. */
  #prepare({ session, request, origin }: AskedCertificate): PreparedCertificate {
    const { ttlSeconds, attestation } = request;
    const subject = readSubjectKey(request.publicKey);
    const claimsHardware = isSecurityKey(subject);
    const { requireSecurityKey } = this.config.ssh;
    if (requireSecurityKey && !claimsHardware) throw hardwareRequired();
    const { sessionId, userId, email } = session;
    const recorded: SshCertificateRequest = {
      sessionId,
      userId,
      email,
      isSecurityKey: claimsHardware,
      attestationRequired: requireSecurityKey,
      attestation,
      keyId: `${email}@${this.config.relyingParty.id}`,
      keyFingerprint: subject.fingerprint,
      caFingerprint: this.authority.fingerprint,
      ...this.#choosePrincipals(email, request.principals),
      principalsDomain: this.config.ssh.principalsDomain,
      host: request.host,
      ttlSeconds: ttlSeconds === undefined ? undefined : Math.min(ttlSeconds, LONGEST_TTL),
      mostOnRecord: this.counts.limitOf(userId),
      auditId: newUuid(),
      origin,
    };
    return { subject, recorded };
  }

  /** Signs a certificate that is recorded. */
  async #complete(
    { subject, recorded: { userId, keyId, origin } }: PreparedCertificate,
    issued: RecordedCertificate,
  ): Promise<IssuedCertificate> {
    this.counts.noteIssued(userId);
    const verifyRequired = issued.attestation?.verifyRequired === true;
    const certificate = await this.#sign({ ...issued, subject, keyId, verifyRequired }, origin);
    return { certificate, keyId, ...issued, caPublicKey: this.authority.publicKeyLine() };
  }

  /**
   * Records in the audit log that the rules of groups of hosts refuse a certificate. Returns the
   * denial. It is `not_assigned` if the request names a principal of the user's organization that
   * no group gives the user. So a group that does not exist gives the same error as a group that
   * does not admit the user.
   */
  async #recordRefusal(
    outcome: Denied,
    session: IssuingSession,
    request: SshRequestedCertificate,
    origin: AuditOrigin,
  ): Promise<Denied> {
    const names = request.principals?.filter((name) => OF_GROUP.test(name)) ?? [];
    const principals =
      outcome.denial === 'withheld'
        ? await unassignedPrincipals(this.manager, session.userId, names)
        : [];
    const isUnassigned = principals.length > 0;
    const denied: Denied = isUnassigned ? { denial: 'not_assigned' } : outcome;
    const target = {
      kind: 'host_group',
      name: request.host ?? null,
      hostGroups: (isUnassigned ? principals : names).map(groupOf),
      ...(isUnassigned && { principals }),
    } as const;
    await recordRefusedAccess(this.manager, session, target, denied, origin);
    return denied;
  }

  /**
   * Signs a certificate that is already recorded. If the signature fails, no client gets the
   * certificate, and its record is marked as revoked.
   */
  async #sign(certificate: UnsignedCertificate, origin: AuditOrigin): Promise<string> {
    try {
      return await this.authority.sign(certificate);
    } catch (error) {
      await revokeUnsigned(this.manager, certificate.serial, origin).catch((fault: unknown) => {
        new Logger('ssh-authority').error(
          fault,
          'a certificate that was not signed stays valid on record',
        );
      });
      throw error;
    }
  }

  /**
   * Records a certificate. If the request proves that the private key is inside a security key, the
   * proof is recorded in the same transaction.
   */
  async #record(request: SshCertificateRequest): Promise<Outcome<RecordedCertificate>> {
    const { userId, keyFingerprint, attestation } = request;
    const outcome = await (attestation
      ? withTransactionRetry(this.manager, async (tx) => {
          const recorded = await certificateKindOf(request).issue(tx, request);
          // The statement that issued the certificate has locked the row of the user, as
          // `recordAttestedKey` requires.
          if ('issued' in recorded)
            await recordAttestedKey(tx, userId, keyFingerprint, attestation);
          return recorded;
        })
      : this.#issue(request));
    // The denial `withheld` has two possible reasons: a missing attestation, or no principal. This
    // look-up finds out which one it is, only to choose the error text.
    const isWithheld = 'denial' in outcome && outcome.denial === 'withheld';
    if (isWithheld && request.attestationRequired && !attestation) {
      if (!(await isAttestedKey(this.manager, userId, keyFingerprint))) throw hardwareRequired();
    }
    return outcome;
  }

  /**
   * Issues a certificate. A shorter statement is enough for a user whom no group of hosts admits.
   * It denies the request of any other user, and the full statement follows. The process remembers
   * such users, only to skip the shorter statement the next time.
   */
  async #issue(request: SshCertificateRequest): Promise<Outcome<RecordedCertificate>> {
    const { userId } = request;
    const withoutGroups = this.#peopleWithGroups.has(userId)
      ? undefined
      : kindWithoutGroups(request);
    if (withoutGroups) {
      const outcome = await this.issuance.issueUnlocked(withoutGroups, request);
      if ('issued' in outcome) return outcome;
      if (outcome.denial === 'changed') this.#rememberGroups(userId);
    }
    const outcome = await this.issuance.issue(certificateKindOf(request), request);
    if ('issued' in outcome) this.#forgetGroups(outcome.issued, request);
    return outcome;
  }

  /** Forgets that a group admits a user, if the issued certificate shows that none does. */
  #forgetGroups({ hostGroups }: RecordedCertificate, request: SshCertificateRequest): void {
    const hasNone = (hostGroups ?? []).length === 0;
    if (hasNone && request.host === undefined) this.#peopleWithGroups.delete(request.userId);
  }

  #rememberGroups(userId: string): void {
    if (this.#peopleWithGroups.size >= MOST_REMEMBERED) this.#peopleWithGroups.clear();
    this.#peopleWithGroups.add(userId);
  }

  /**
   * Prepares two lists of principals. `principals` is for a user of the one organization in which
   * user names are principals, and `principalsElsewhere` is for all other users. The statement that
   * records the certificate chooses a list, and adds the principals of groups of hosts.
   */
  #choosePrincipals(email: string, all: readonly string[] | undefined): ChosenPrincipals {
    const kinds = this.config.ssh.principals;
    const principals = principalsOf(email, kinds, true);
    const principalsElsewhere = principalsOf(email, kinds, false);
    if (all === undefined) return { principals, principalsElsewhere, groupPrincipals: undefined };

    if (all.length === 0) {
      throw new DomainError(
        'invalid_request',
        '`principals` is empty: name at least one or leave it out.',
      );
    }
    const groupPrincipals = [...new Set(all.filter((name) => OF_GROUP.test(name)))];
    const asked = all.filter((name) => !OF_GROUP.test(name));
    if (!asked.every((name) => principals.includes(name))) {
      throw new DomainError(
        'principal_not_allowed',
        `Only these principals are allowed: ${principals.join(', ')}, and those of your groups of hosts.`,
      );
    }
    const named = principals.filter((name) => asked.includes(name));
    // If a request names principals, the certificate gets exactly these, or the request is refused,
    // so that no client gets fewer principals without noticing. An empty `principalsElsewhere`
    // makes the statement refuse the request.
    const allElsewhere = named.every((name) => principalsElsewhere.includes(name));
    return {
      principals: named,
      principalsElsewhere: allElsewhere ? named : [],
      groupPrincipals,
    };
  }
}

type ChosenPrincipals = Pick<
  SshCertificateRequest,
  'principals' | 'principalsElsewhere' | 'groupPrincipals'
>;

/** Returns the name of the group of hosts that a principal ({@link OF_GROUP}) contains. */
function groupOf(name: string): string {
  return OF_GROUP.exec(name)?.[1] ?? '';
}

function hardwareRequired(): DomainError {
  return new DomainError(
    'hardware_ssh_key_required',
    'This service certifies only SSH keys inside security keys, proven by their attestation. Make one with `svc setup ssh --sk`, or send `attestation` with the key.',
  );
}
