import { z } from 'zod';
import { proofRecord, type ProofRecord } from '#domain/organization-domains/domain-record.js';
import { stateOf, type DomainState } from '#domain/organization-domains/domain-state.js';
import type { OrganizationDomain } from '#domain/organization-domains/organization-domains.repository.js';

/** The body of `POST /api/v1/org/domains`. The domain decides what a domain name is. */
export const ADD_DOMAIN = z.strictObject({ domain: z.string().trim().min(1).max(1024) });
/** The result of {@link ADD_DOMAIN}. */
export type AddDomain = z.output<typeof ADD_DOMAIN>;

/** A text that is no domain name is the name of no domain of the organization: 404, not 400. */
export const DOMAIN_NAME = z.object({ domain: z.string() });

/** A domain in the JSON of the API. */
export interface DomainJson {
  readonly domain: string;
  readonly primary: boolean;
  readonly state: DomainState;
  /** The record to publish; null for the primary domain, which needs none. */
  readonly record: ProofRecord | null;
  readonly added_by: string | null;
  readonly created_at: string;
  readonly verified_at: string | null;
  readonly last_checked_at: string | null;
  readonly failures: number;
}

/** Renders a domain as JSON. */
export function domainJson(found: OrganizationDomain): DomainJson {
  return {
    domain: found.domain,
    primary: found.isPrimary,
    state: stateOf(found),
    record: found.token === null ? null : proofRecord(found.domain, found.token),
    added_by: found.addedBy,
    created_at: found.createdAt.toISOString(),
    verified_at: found.verifiedAt?.toISOString() ?? null,
    last_checked_at: found.lastCheckedAt?.toISOString() ?? null,
    failures: found.failures,
  };
}
