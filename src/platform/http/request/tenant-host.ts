import type { IncomingMessage } from 'node:http';

/** A tenant with a host of its own, as the application found it for a request. */
export interface HostedTenant {
  /** The origin of the host, from the configuration and a stored label; never from the request. */
  readonly origin: string;
}

/** The hosts of tenants: names of one label below the service's own host. */
export interface TenantHosts {
  /** Returns true for a label that a tenant can have. No other name costs a look-up. */
  isLabel(label: string): boolean;
  /**
   * Finds the tenant that has a label now. Nothing between a request and the database may remember
   * the answer.
   */
  find(label: string): Promise<HostedTenant | undefined>;
}

const TENANT = Symbol('tenant of the host');
type Hosted = IncomingMessage & { [TENANT]?: HostedTenant };

/** Notes the tenant whose host a request names. */
export function noteTenant(request: Hosted, tenant: HostedTenant): void {
  request[TENANT] = tenant;
}

/**
 * Returns the tenant whose host a request names; undefined for a request to the service's own host.
 */
export function tenantOf(request: Hosted): HostedTenant | undefined {
  return request[TENANT];
}
