import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { parseDomain } from '#domain/organizations/domains/domain-name.js';
import { DomainOwnership } from '#domain/organizations/domains/domain-ownership.service.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import {
  findOrganization,
  listDomains,
  type KnownDomain,
  type KnownOrganization,
} from './domains.repository.js';
import { operatorDetails, type MachineOperator } from './operator.js';
import { rehearsed } from './rehearsal.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * An act of the operator on a domain: `assign` gives it to an organization, `release` takes it
 * away.
 */
export interface OperatorDomainAct {
  readonly kind: 'release' | 'assign';
  readonly domain: string;
  /** The id of the organization that gets the domain; null if the act takes the domain away. */
  readonly orgId: string | null;
  readonly operator: MachineOperator;
}

/** The result of an act of the operator on a domain. */
export interface DomainOutcome {
  /** False if the act had no effect; then no audit event was written. */
  readonly changed: boolean;
  /** The id of the organization that had the domain before; null if none had it. */
  readonly ownerBefore: string | null;
  readonly ended: RevokedCounts;
}

/** The dependencies of {@link OperatorDomains}. */
export interface OperatorDomainParts {
  readonly dataSource: DataSource;
  readonly organizations: OrganizationsRepository;
  readonly ownership: DomainOwnership;
}

/**
 * The acts of the operator of the service on domains. Each change is one transaction with its audit
 * event.
 */
export class OperatorDomains {
  constructor(private readonly parts: OperatorDomainParts) {}

  /**
   * Lists the domains of all organizations, or those of the organization `org` (its id or a
   * verified domain), or only the named `domain`.
   */
  list(query: { readonly org?: string | undefined; readonly domain?: string }) {
    return listDomains(this.parts.dataSource.manager, query);
  }

  /** Finds an organization by its id or a verified domain; undefined if there is none. */
  organization(named: string): Promise<KnownOrganization | undefined> {
    return findOrganization(this.parts.dataSource.manager, named);
  }

  /**
   * Performs an act of the operator on a domain.
   *
   * @throws DomainError not_found for a domain that no organization owns, or an organization that
   *   does not exist any more; invalid_request for a domain whose e-mail addresses belong to
   *   unrelated people, such as the domain of a mail service; domain_taken for a domain that
   *   another organization has proven
   */
  perform(act: OperatorDomainAct): Promise<DomainOutcome> {
    return withTransactionRetry(this.parts.dataSource, (tx) => this.#perform(tx, act));
  }

  /**
   * Returns the result that an act would have. The transaction of the act is rolled back, so that
   * nothing changes.
   *
   * @throws DomainError as the act does
   */
  rehearse(act: OperatorDomainAct): Promise<DomainOutcome> {
    return rehearsed(this.parts.dataSource, (tx) => this.#perform(tx, act));
  }

  async #perform(tx: EntityManager, act: OperatorDomainAct): Promise<DomainOutcome> {
    const { organizations, ownership } = this.parts;
    const domain = parseDomain(act.domain);
    const by = {
      origin: { requestId: newUuid(), ip: undefined, userAgent: undefined },
      details: { ...operatorDetails(act.operator) },
    };
    await organizations.lockDomain(tx, domain);
    const [owner]: (KnownDomain | undefined)[] = await listDomains(tx, { domain, owned: true });
    const ownerBefore = owner?.organization.id ?? null;
    if (act.orgId === null) {
      const { ended } = await ownership.release(tx, domain, by);
      return { changed: true, ownerBefore, ended };
    }
    if (!(await findOrganization(tx, act.orgId))) {
      throw new DomainError(
        'not_found',
        'There is no such organization. The command `domains` lists those that own a domain.',
      );
    }
    const ended = await ownership.assign(tx, { orgId: act.orgId, domain }, by);
    return { changed: ended !== undefined, ownerBefore, ended: ended ?? {} };
  }
}
