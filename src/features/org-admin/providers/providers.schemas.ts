import { z } from 'zod';
import type { ListedProvider } from '#domain/providers/identity-providers.service.js';
import type {
  OrganizationProvider,
  Withdrawal,
} from '#domain/admin/organization/organization-providers.service.js';

/** The body of `POST /api/v1/org/providers`. */
export const ALLOW_PROVIDER = z
  .strictObject({
    provider: z
      .string()
      .min(1, 'must not be empty')
      .max(64, 'must have at most 64 characters')
      .describe('The slug of an identity provider that the operator has configured.'),
    tenant: z
      .string()
      .trim()
      .max(253, 'must have at most 253 characters')
      .exactOptional()
      .describe(
        'The tenant, for a provider that serves many: the UUID of an Entra tenant, or the domain of a Google Workspace organization.',
      ),
  })
  .describe('The identity provider to allow.');
/** The body of `POST /api/v1/org/providers` after validation, as the handler gets it. */
export type AllowProvider = z.output<typeof ALLOW_PROVIDER>;

/** The path parameter of a provider. A text that is no UUID gets 404, and not 400. */
export const PROVIDER_ID = z.object({
  id: z.string().describe('The id of the provider in the list of the organization.'),
});

/** An identity provider that the organization accepts, in the JSON of the API. */
export const ORGANIZATION_PROVIDER_JSON = z
  .object({
    id: z.string().describe('The id in the list of the organization.'),
    provider: z
      .string()
      .nullable()
      .meta({ description: 'The slug; null when the provider is not configured any more.' }),
    name: z.string().nullable().describe('The name that people see.'),
    issuer: z.string().describe('The issuer of its tokens or assertions.'),
    tenant: z.string().meta({ description: 'Empty for a provider without tenants.' }),
    founding: z.boolean().describe('True for the provider by which the organization was founded.'),
    added_by: z.string().nullable().describe('The id of the admin who allowed it.'),
    created_at: z.iso.datetime().describe('The time at which it was allowed.'),
    users: z.int().meta({ description: 'The members who are bound through it.' }),
  })
  .meta({
    id: 'OrganizationProvider',
    description: 'An identity provider that the organization accepts.',
  });
/**
 * The type of an identity provider that the organization accepts, in the JSON of the API, by which
 * the compiler checks answers.
 */
export type OrganizationProviderJson = z.output<typeof ORGANIZATION_PROVIDER_JSON>;

/** An identity provider that the operator has configured, in the JSON of the API. */
export const AVAILABLE_PROVIDER_JSON = z
  .object({
    provider: z.string().describe('The slug.'),
    name: z.string().describe('The name that people see.'),
    issuer: z.string().describe('The issuer of its tokens or assertions.'),
    tenant_required: z.boolean().describe('True if an organization must name its tenant.'),
  })
  .meta({
    id: 'AvailableProvider',
    description: 'An identity provider that the operator has configured.',
  });
/**
 * The type of an identity provider that the operator has configured, in the JSON of the API, by
 * which the compiler checks answers.
 */
export type AvailableProviderJson = z.output<typeof AVAILABLE_PROVIDER_JSON>;

/**
 * The answer to the withdrawal of an identity provider: the numbers of sessions, certificates and
 * so on that ended.
 */
export const WITHDRAWAL_JSON = z
  .object({
    users: z.int().meta({ description: 'The users whose access ended.' }),
    sessions_revoked: z.int().describe('The ended sessions.'),
    certificates_revoked: z.int().describe('The revoked SSH certificates.'),
    github_tokens_revoked: z.int().describe('The ended GitHub tokens.'),
    ended: z
      .record(z.string(), z.int())
      .describe('The numbers of what ended, by their kind, as other acts show them.'),
  })
  .meta({ id: 'Withdrawal', description: 'What the withdrawal of a provider ended.' });

/** The identity providers of an organization, and those that it may allow. */
export const PROVIDERS_JSON = z
  .object({
    providers: z.array(ORGANIZATION_PROVIDER_JSON).describe('The accepted providers.'),
    available: z.array(AVAILABLE_PROVIDER_JSON).describe('The providers that can be allowed.'),
  })
  .describe('The identity providers of the organization.');
/**
 * The type of the answer to the withdrawal of an identity provider, by which the compiler checks
 * answers.
 */
export type WithdrawalJson = z.output<typeof WITHDRAWAL_JSON>;

/**
 * Renders an accepted identity provider as JSON. The slug and the name are null if it is no longer
 * configured.
 */
export function organizationProviderJson(provider: OrganizationProvider): OrganizationProviderJson {
  const { id, configured, issuer, tenant, founding, addedBy, createdAt, users } = provider;
  return {
    id,
    provider: configured?.slug ?? null,
    name: configured?.name ?? null,
    issuer,
    tenant,
    founding,
    added_by: addedBy,
    created_at: createdAt.toISOString(),
    users,
  };
}

/**
 * Renders a configured identity provider as JSON, and says if an organization must name a tenant.
 */
export function availableProviderJson({
  slug,
  name,
  issuer,
  tenancy,
}: ListedProvider): AvailableProviderJson {
  return { provider: slug, name, issuer, tenant_required: tenancy.kind !== 'one' };
}

/**
 * Renders as JSON how many users, sessions and credentials the withdrawal of an identity provider
 * ended.
 */
export function withdrawalJson({ users, counts }: Withdrawal): WithdrawalJson {
  return {
    users,
    sessions_revoked: counts['sessions'] ?? 0,
    certificates_revoked: counts['certificates'] ?? 0,
    github_tokens_revoked: counts['github_tokens'] ?? 0,
    ended: { users, ...counts },
  };
}
