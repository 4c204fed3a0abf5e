import type {
  DomainOfOrganization,
  Revocable,
  RevocationCause,
  RevocationScope,
  RevokedCounts,
} from '#domain/access-revocation/revocable.js';
import { REVOCATION_ORDER } from '#domain/access-revocation/revocation-order.js';
import { withoutZeros } from '#domain/access-revocation/revocable.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { endUnprovenClusters, type ClientApplication } from './applications.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { registrationOf } from './registration-metadata.js';

/**
 * The origin in audit events about clusters that are deleted because an organization lost or proved
 * a domain. It names no request, because the organization that reads such an event must not see the
 * request of another organization.
 */
const NO_REQUEST = { requestId: 'domain-change', ip: undefined, userAgent: undefined };

/**
 * Ends the registrations of Kubernetes clusters, and the tokens for them, if the proof of their
 * domain changes. An organization that loses a domain loses its clusters under the domain. If one
 * organization proves a domain, other organizations lose their clusters under it.
 */
export class RegisteredResources implements Revocable {
  readonly revocationOrder = REVOCATION_ORDER.clusters;
  /**
   * Empty, because a cluster belongs to its organization, so that nothing that happens to a user
   * ends a cluster.
   */
  readonly revocationScopes: ReadonlySet<RevocationScope> = new Set();
  /**
   * Null, because the clusters stay even if a failover of the database has lost commits: a
   * registration alone gives no access. The tokens for a cluster end with the sessions.
   */
  readonly revokeOnRecord = null;

  constructor(private readonly auditLog: AuditLog) {}

  async revoke(): Promise<RevokedCounts> {
    return {};
  }

  async count(): Promise<RevokedCounts> {
    return {};
  }

  async revokeOfDomain(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const ended = await endUnprovenClusters(tx, domain, 'own');
    return this.#recorded(tx, ended, cause);
  }

  async claimDomain(
    tx: EntityManager,
    domain: DomainOfOrganization,
    cause: RevocationCause,
  ): Promise<RevokedCounts> {
    const ended = await endUnprovenClusters(tx, domain, 'others');
    await this.#recorded(tx, ended, cause);
    // No counts are returned, because the caller would record them for the organization that proved
    // the domain. That organization must not learn what other organizations had.
    return {};
  }

  async #recorded(
    tx: EntityManager,
    ended: readonly ClientApplication[],
    { reason }: RevocationCause,
  ): Promise<RevokedCounts> {
    for (const { id, orgId, resource, metadata } of ended) {
      const { name } = registrationOf(metadata);
      await this.auditLog.record(tx, {
        type: 'oauth_client_deleted',
        actorId: null,
        subjectId: null,
        orgId,
        origin: NO_REQUEST,
        details: { client_id: id, name, type: 'kubernetes', resource, reason },
      });
    }
    return withoutZeros({ applications: ended.length });
  }
}
