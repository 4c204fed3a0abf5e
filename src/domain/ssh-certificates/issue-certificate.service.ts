import { Inject, Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { newUuid } from '#platform/crypto/random.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { CertificateAuthority } from './certificate-authority.service.js';
import { principalsOf } from './principals.js';
import { type IssueRefusal, SshCertificatesRepository } from './ssh-certificates.repository.js';
import { parseSshPublicKey } from './ssh-public-key.js';

/** The hardware-verified session that asks. */
export interface IssuingSession {
  readonly sessionId: string;
  readonly userId: string;
  readonly email: string;
}

/** The body of `POST /v1/credentials/ssh`. */
export interface CertificateRequest {
  readonly public_key: string;
  /** A subset of what the person may hold; all of it when absent. */
  readonly principals?: readonly string[] | undefined;
  /** A positive whole number; the certificate never outlives the session. */
  readonly ttl_seconds?: number | undefined;
}

/** The answer of `POST /v1/credentials/ssh`. */
export interface IssuedCertificate {
  readonly certificate: string;
  /** Decimal: JSON numbers are not safe for what clients may do with 64 bits. */
  readonly serial: string;
  readonly key_id: string;
  readonly principals: readonly string[];
  /** RFC 3339. */
  readonly valid_after: string;
  readonly valid_before: string;
  readonly ca_public_key: string;
}

const LONGEST_TTL = 366 * 86_400; // beyond every session; keeps PostgreSQL's intervals in range

const REFUSALS: Record<IssueRefusal, readonly [ErrorCode, string]> = {
  session_gone: ['unauthenticated', 'The session has ended. Log in again.'],
  account_inactive: ['account_inactive', 'This account is deactivated.'],
  domain_not_owned: [
    'issuance_refused',
    'The domain of your e-mail address is not one that your organization has proven to own.',
  ],
  no_principal: ['principal_not_allowed', 'No SSH principal can be given to this account here.'],
};

/** Issues SSH user certificates: one parse, one statement, one signature, in this order. */
@Injectable()
export class IssueCertificate {
  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'ssh' | 'relyingParty'>,
    private readonly dataSource: DataSource,
    private readonly authority: CertificateAuthority,
    private readonly certificates: SshCertificatesRepository,
  ) {}

  /**
   * Records, then signs: a certificate that is not on record could not be revoked, so it never leaves the server.
   * @throws DomainError `invalid_public_key`, `invalid_request`, `principal_not_allowed`, `unauthenticated`,
   *   `account_inactive` or `issuance_refused`
   */
  async issue({
    session,
    request,
    origin,
  }: {
    readonly session: IssuingSession;
    readonly request: CertificateRequest;
    readonly origin: AuditOrigin;
  }): Promise<IssuedCertificate> {
    const { authority } = this;
    const subject = parseSshPublicKey(request.public_key);
    const keyId = `${session.email}@${this.config.relyingParty.id}`;
    const recorded = await this.certificates.recordIssue(this.dataSource.manager, {
      ...session,
      keyId,
      publicKey: subject.fingerprint,
      caFingerprint: authority.fingerprint,
      ...this.#choosePrincipals(session.email, request.principals),
      ttlSeconds: readTtl(request.ttl_seconds),
      auditId: newUuid(),
      origin,
    });
    if (typeof recorded === 'string') throw new DomainError(...REFUSALS[recorded]);

    const certificate = authority.sign({ ...recorded, subject, keyId });
    return {
      certificate,
      serial: recorded.serial.toString(),
      key_id: keyId,
      principals: recorded.principals,
      valid_after: rfc3339(recorded.validAfter),
      valid_before: rfc3339(recorded.validBefore),
      ca_public_key: authority.publicKeyLine(),
    };
  }

  /** Whether account names are given is decided by the statement that records; both outcomes are prepared here. */
  #choosePrincipals(
    email: string,
    asked: readonly string[] | undefined,
  ): { principals: string[]; principalsElsewhere: string[] } {
    const kinds = this.config.ssh.principals;
    const principals = principalsOf(email, kinds, true);
    const principalsElsewhere = principalsOf(email, kinds, false);
    if (asked === undefined) return { principals, principalsElsewhere };

    if (asked.length === 0) {
      throw new DomainError(
        'invalid_request',
        '`principals` is empty: name at least one or leave it out.',
      );
    }
    if (!asked.every((name) => principals.includes(name))) {
      throw new DomainError(
        'principal_not_allowed',
        `You may ask for no other than: ${principals.join(', ')}.`,
      );
    }
    const named = principals.filter((name) => asked.includes(name));
    // Who names an account gets exactly what was named or nothing, not silently less.
    const allElsewhere = named.every((name) => principalsElsewhere.includes(name));
    return { principals: named, principalsElsewhere: allElsewhere ? named : [] };
  }
}

function readTtl(ttl: number | undefined): number | undefined {
  if (ttl === undefined) return undefined;
  if (!Number.isInteger(ttl) || ttl < 1) {
    throw new DomainError('invalid_request', '`ttl_seconds` must be a positive whole number.');
  }
  return Math.min(ttl, LONGEST_TTL);
}

/** Certificates count whole seconds, so no fraction is lost. */
function rfc3339(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z');
}
