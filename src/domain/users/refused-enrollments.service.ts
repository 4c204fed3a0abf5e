import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { UpstreamIdentity } from '#domain/identity-providers/upstream-identity.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { domainOfEmail } from '#domain/organizations/email-address.js';

/** Why an enrollment came to nothing: an error of ours, or what a browser said of the key. */
export interface RefusedEnrollment {
  readonly code: string;
  readonly reason: string;
}

/** These say nothing of a key: the request came too late, twice, or in no session. */
const NOT_OF_A_KEY: ReadonlySet<ErrorCode> = new Set(['invalid_state', 'unauthenticated']);

/** Keys that were not enrolled, each with an audit row that its person and their organization can read. */
@Injectable()
export class RefusedEnrollments {
  constructor(
    private readonly dataSource: DataSource,
    private readonly organizations: OrganizationsRepository,
    private readonly audit: AuditLog,
  ) {}

  /** Runs a step of an enrollment, and records its refusal. The step's own transaction is over by then. */
  async during<Result>(
    session: LiveSession,
    origin: AuditOrigin,
    step: () => Promise<Result>,
  ): Promise<Result> {
    try {
      return await step();
    } catch (error) {
      if (error instanceof DomainError && error.status < 500 && !NOT_OF_A_KEY.has(error.code)) {
        await this.record(session, { code: error.code, reason: error.detail }, origin);
      }
      throw error;
    }
  }

  /** Records a refusal: of the user, or of the person who would become one. */
  async record(
    { user, pendingIdentity }: LiveSession,
    refused: RefusedEnrollment,
    origin: AuditOrigin,
  ): Promise<void> {
    await this.dataSource.transaction(async (tx) => {
      const orgId = user ? user.orgId : await this.#organizationOf(tx, pendingIdentity);
      const { email } = user ?? pendingIdentity;
      await this.audit.record(tx, {
        type: 'enrollment_refused',
        actorId: user?.id ?? null,
        subjectId: user?.id ?? null,
        orgId,
        origin,
        details: { email, ...refused },
      });
    });
  }

  /** The organization that the person would join: its administrators are told. */
  async #organizationOf(tx: EntityManager, identity: UpstreamIdentity): Promise<string | null> {
    const domain = domainOfEmail(identity.email);
    const found = await this.organizations.findByDomain(tx, domain, identity);
    return found?.acceptsProvider ? found.id : null;
  }
}
