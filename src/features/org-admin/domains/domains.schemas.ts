import { z } from 'zod';
import { proofRecord } from '#domain/organizations/domains/domain-record.js';
import { stateOf } from '#domain/organizations/domains/domain-state.js';
import type { OrganizationDomain } from '#domain/organizations/domains/organization-domains.repository.js';

/**
 * The body of `POST /api/v1/org/domains`. Code in `domain/organizations` checks that the text is a
 * domain name.
 */
export const ADD_DOMAIN = z
  .strictObject({ domain: z.string().trim().min(1).max(1024).describe('The name of the domain.') })
  .describe('The domain to add.');
/** The body of `POST /api/v1/org/domains` after validation, as the handler gets it. */
export type AddDomain = z.output<typeof ADD_DOMAIN>;

/**
 * The path parameter of a domain. A text that is no domain name gets 404 and not 400, because it
 * matches no domain of the organization.
 */
export const DOMAIN_NAME = z.object({ domain: z.string().describe('The name of the domain.') });

/** A domain in the JSON of the API. */
export const DOMAIN_JSON = z
  .object({
    domain: z.string().describe('The name of the domain.'),
    primary: z.boolean().describe('True for the domain by which the organization was founded.'),
    state: z
      .enum(['verified', 'pending', 'failing', 'unverified'])
      .describe(
        '`pending` is not proven yet, `failing` lost its record lately, `unverified` lost the proof.',
      ),
    record: z
      .object({
        type: z.literal('TXT').describe('The type of the record.'),
        name: z.string().describe('The name of the record.'),
        value: z.string().describe('The text of the record.'),
      })
      .nullable()
      .meta({
        description: 'The record to publish; null for a domain that the operator assigned.',
      }),
    proof: z.enum(['dns', 'operator', 'provider']).nullable().meta({
      description:
        'How the organization has proven the domain: by the record, by the operator, or by the setting of its founding provider. Null for a primary domain that a sign-in alone asserted: the proof of another organization takes it.',
    }),
    added_by: z.string().nullable().describe('The id of the admin who added it.'),
    created_at: z.iso.datetime().describe('The time at which it was added.'),
    verified_at: z.iso.datetime().nullable().describe('The time of the proof; null without one.'),
    last_checked_at: z.iso.datetime().nullable().describe('The time of the last check.'),
    failures: z.int().describe('The checks in a row that did not find the record.'),
  })
  .meta({ id: 'Domain', description: 'A domain of the organization.' });

/** The domains of an organization in the JSON of the API. */
export const DOMAINS_JSON = z
  .object({ domains: z.array(DOMAIN_JSON).describe('The domains.') })
  .describe('The domains of the organization.');

/** The type of a domain in the JSON of the API, by which the compiler checks answers. */
export type DomainJson = z.output<typeof DOMAIN_JSON>;

/** Renders a domain as JSON. The DNS record is null if the domain needs none. */
export function domainJson(found: OrganizationDomain): DomainJson {
  return {
    domain: found.domain,
    primary: found.isPrimary,
    state: stateOf(found),
    record:
      found.token === null || found.proof === 'operator'
        ? null
        : proofRecord(found.domain, found.token),
    proof: found.proof,
    added_by: found.addedBy,
    created_at: found.createdAt.toISOString(),
    verified_at: found.verifiedAt?.toISOString() ?? null,
    last_checked_at: found.lastCheckedAt?.toISOString() ?? null,
    failures: found.failures,
  };
}
