import { Logger } from '@nestjs/common';
import type { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { DomainOfOrganization } from '#domain/access-revocation/revocable.js';
import type { IdentityProviders } from '../identity-providers.service.js';
import { issuerTemplate } from '../tenancy.js';
import type { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import {
  findOwner,
  listChangedVouching,
  setVouched,
} from '#domain/organizations/domains/domain-owners.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

const security = new Logger('security');

/** The dependencies of {@link recordVouchedDomains}. */
export interface VouchingParts {
  readonly dataSource: DataSource;
  readonly identityProviders: IdentityProviders;
  readonly organizations: OrganizationsRepository;
  readonly accessRevocation: AccessRevocation;
}

/**
 * Records which primary domains of organizations the configuration proves. The primary domain is
 * the one for which an organization was founded. It is proven if the configuration lists it for the
 * provider through which the organization was founded. The database stores the result, so that the
 * operator's commands and every statement use the same one.
 */
export async function recordVouchedDomains(parts: VouchingParts): Promise<void> {
  const { dataSource, identityProviders, organizations, accessRevocation } = parts;
  const providers = identityProviders
    .list()
    .map((provider) => ({ issuer: issuerTemplate(provider), domains: provider.domains }));
  const changed = await listChangedVouching(dataSource.manager, providers);
  for (const { orgId, domain, isNamed } of changed) {
    const own = { orgId, domain };
    const isChanged = await withTransactionRetry(dataSource, async (tx) => {
      await organizations.lockDomain(tx, domain);
      if (!(await setVouched(tx, own, isNamed))) return false;
      const cause = { reason: 'domain claimed', revokedBy: 'organization' };
      if (isNamed) await accessRevocation.claimDomain(tx, own, cause);
      else await endUnproven(tx, accessRevocation, own);
      return true;
    });
    if (isChanged && !isNamed) {
      security.warn(own, 'no setting names this primary domain any more');
    }
  }
}

/**
 * Ends the access that needed the proof of a primary domain, because the configuration does not
 * prove the domain any more. If DNS or the operator also proves the domain, nothing ends. Sessions
 * stay.
 */
async function endUnproven(
  tx: EntityManager,
  accessRevocation: AccessRevocation,
  own: DomainOfOrganization,
): Promise<void> {
  if ((await findOwner(tx, own.domain))?.isProven) return;
  const cause = { reason: 'domain no longer named', revokedBy: 'settings' };
  await accessRevocation.endOfDomain(tx, own, cause);
}
