import { Inject, Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import {
  countClusters,
  insertCluster,
  lockProvenHost,
  type ApplicationManager,
  type ClientApplication,
} from '#domain/oauth/applications/applications.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { newUuid } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ownAudiences, type OwnAudiences } from '../protocol/resource-servers.js';
import type { NewClusterBody } from './applications.schemas.js';
import { RegisteredResources } from '#domain/oauth/applications/registered-resources.js';
import { ManagedApplications } from '#domain/oauth/applications/managed-applications.service.js';
import {
  clusterMetadata,
  hostOfResource,
  resourceProblem,
} from './registration/cluster-registration.js';

/** The largest number of clusters that an organization may have. */
const MOST_CLUSTERS = 100;

/**
 * Registers the Kubernetes clusters of organizations. Our command-line client `svc-cli` can then
 * exchange its token for a token that a registered cluster accepts.
 */
@Injectable()
export class Clusters {
  readonly #ownAudiences: OwnAudiences;
  readonly #registeredResources: RegisteredResources;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly managedApplications: ManagedApplications,
    auditLog: AuditLog,
  ) {
    this.#ownAudiences = ownAudiences(config);
    this.#registeredResources = new RegisteredResources(auditLog);
  }

  /**
   * Registers a cluster of the admin's organization.
   * @throws DomainError invalid_request for a wrong resource; admin_required; limit_reached if the
   *   organization has too many clusters; uniqueness if the resource is registered already
   */
  async register(
    manager: ApplicationManager,
    { name, resource }: NewClusterBody,
    origin: AuditOrigin,
  ): Promise<ClientApplication> {
    return this.managedApplications.registerAsAdmin(manager, async (tx, orgId) => {
      const problem = resourceProblem(resource, orgId, this.#ownAudiences);
      if (problem !== undefined) throw new DomainError('invalid_request', problem);
      await this.#assertProven(tx, orgId, resource);
      if ((await countClusters(tx, orgId)) >= MOST_CLUSTERS) {
        throw new DomainError(
          'limit_reached',
          `An organization can have ${MOST_CLUSTERS} kubernetes applications. Delete one that is not needed first.`,
        );
      }
      const cluster = { id: newUuid(), orgId, resource, metadata: clusterMetadata(name) };
      if (!(await insertCluster(tx, cluster))) {
        throw new DomainError('uniqueness', 'Your organization has registered this resource.');
      }
      const application = await this.managedApplications.find(manager, cluster.id, tx);
      await this.managedApplications.record(tx, {
        type: 'oauth_client_registered',
        manager,
        application,
        origin,
        details: { name, type: 'kubernetes', resource },
      });
      return application;
    });
  }

  /**
   * Checks that an organization has proven that it owns the domain of a cluster's resource. It
   * removes the clusters that other organizations registered at that domain without a proof. A
   * `urn:` has no domain and needs no proof.
   *
   * @throws DomainError invalid_request if the organization has not proven the domain
   */
  async #assertProven(tx: EntityManager, orgId: string, resource: string): Promise<void> {
    const host = hostOfResource(resource);
    if (host === undefined) return;
    if (!(await lockProvenHost(tx, orgId, host))) {
      throw new DomainError(
        'invalid_request',
        `resource: prove the domain of ${host} first, on the page Domains, or use urn:svc:${orgId}: and a name`,
      );
    }
    const cause = { reason: 'domain proven by another organization', revokedBy: 'organization' };
    await this.#registeredResources.claimDomain(tx, { orgId, domain: host }, cause);
  }
}
