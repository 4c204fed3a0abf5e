import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { DomainOfOrganization } from '#domain/access-revocation/revocable.js';
import { IdentityProviders } from '../identity-providers.service.js';
import { issuerTemplate } from '../tenancy.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import {
  findOwner,
  listChangedVouching,
  setVouched,
} from '#domain/organizations/domains/domain-owners.repository.js';

/**
 * Records at each start which primary domains the settings prove. They prove a domain if they list
 * it for the provider through which the organization was founded. The database stores the result,
 * so that the operator's commands and every statement agree.
 */
@Injectable()
export class VouchedDomains implements OnApplicationBootstrap {
  readonly #security = new Logger('security');

  constructor(
    private readonly dataSource: DataSource,
    private readonly identityProviders: IdentityProviders,
    private readonly organizations: OrganizationsRepository,
    private readonly accessRevocation: AccessRevocation,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const providers = this.identityProviders
      .list()
      .map((provider) => ({ issuer: issuerTemplate(provider), domains: provider.domains }));
    const changed = await listChangedVouching(this.dataSource.manager, providers);
    for (const { orgId, domain, isNamed } of changed) {
      const own = { orgId, domain };
      const isChanged = await this.dataSource.transaction(async (tx) => {
        await this.organizations.lockDomain(tx, domain);
        if (!(await setVouched(tx, own, isNamed))) return false;
        const cause = { reason: 'domain claimed', revokedBy: 'organization' };
        if (isNamed) await this.accessRevocation.claimDomain(tx, own, cause);
        else await this.#endUnproven(tx, own);
        return true;
      });
      if (isChanged && !isNamed) {
        this.#security.warn(own, 'no setting names this primary domain any more');
      }
    }
  }

  /**
   * Ends the items that needed the proof of a primary domain, unless DNS or the operator proves it
   * too. Sessions stay.
   */
  async #endUnproven(tx: EntityManager, own: DomainOfOrganization): Promise<void> {
    if ((await findOwner(tx, own.domain))?.isProven) return;
    const cause = { reason: 'domain no longer named', revokedBy: 'settings' };
    await this.accessRevocation.endOfDomain(tx, own, cause);
  }
}
