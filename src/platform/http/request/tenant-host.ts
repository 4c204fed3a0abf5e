import type { IncomingMessage } from 'node:http';

/** A tenant (an organization) that has a host of its own. */
export interface HostedTenant {
  /**
   * The origin of the tenant's host. It comes from the configuration and a stored label, and never
   * from the request.
   */
  readonly origin: string;
}

/**
 * Looks up tenants by their hosts, each of which is one label in front of the service's own host:
 * `acme.svc.example`.
 */
export interface TenantHosts {
  /**
   * Returns true for a label that a tenant may have. Any other label is not looked up in the
   * database.
   */
  isLabel(label: string): boolean;
  /**
   * Returns the tenant that has a label now; undefined if there is none. Results must not be
   * cached, because a label can be given to another tenant.
   */
  find(label: string): Promise<HostedTenant | undefined>;
}

const TENANT = Symbol('tenant of the host');
type Hosted = IncomingMessage & { [TENANT]?: HostedTenant };

/** Records on a request the tenant whose host it names. */
export function noteTenant(request: Hosted, tenant: HostedTenant): void {
  request[TENANT] = tenant;
}

/**
 * Returns the tenant whose host a request names; undefined if the request names the service's own
 * host.
 */
export function tenantOf(request: Hosted): HostedTenant | undefined {
  return request[TENANT];
}
