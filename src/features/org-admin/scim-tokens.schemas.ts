import { z } from 'zod';
import { MEMBERSHIPS } from '#domain/organizations/membership.js';
import type { ListedRefusal } from '#domain/directory/scim-tokens/scim-refusals.repository.js';
import { LINE_OF_TEXT } from './organization.schemas.js';
import type {
  ListedToken,
  NewToken,
} from '#domain/admin/organization/organization-admin.service.js';

/**
 * The days until a SCIM token expires: the default, and the largest number that an admin can
 * choose.
 */
const DAYS = { usual: 90, most: 365 } as const;

/** The body of `POST /api/v1/org/scim-tokens`. */
export const CREATE_TOKEN = z
  .strictObject({
    description: LINE_OF_TEXT.describe('What the token is for.'),
    expires_in_days: z
      .int()
      .min(1)
      .max(DAYS.most)
      .default(DAYS.usual)
      .describe('The days until it expires.'),
    replaces: z
      .string()
      .max(64, 'must have at most 64 characters')
      .exactOptional()
      .describe('The id of the token that it replaces. Both are valid until that one is revoked.'),
  })
  .describe('The token to create.');
/** The body of `POST /api/v1/org/scim-tokens` after validation, as the handler gets it. */
export type CreateToken = z.output<typeof CREATE_TOKEN>;

/** The path parameter of a token. A text that is no UUID gets 404, and not 400. */
export const TOKEN_ID = z.object({ id: z.string().describe('The id of the SCIM token.') });

/** A SCIM token in the JSON of the API, without its secret. */
export const SCIM_TOKEN_JSON = z
  .object({
    id: z.string().describe('The id of the token.'),
    description: z.string().describe('What the token is for.'),
    created_by: z.string().describe('The id of the admin who made it.'),
    created_by_email: z
      .string()
      .nullable()
      .meta({ description: 'The address of the admin at that time.' }),
    created_at: z.iso.datetime().describe('The time of its creation.'),
    last_used_at: z.iso.datetime().nullable().describe('The time of its last use, to the minute.'),
    expires_at: z.iso.datetime().describe('The time at which it expires.'),
    expires_soon: z.boolean().meta({ description: 'True within 30 days before the end.' }),
    replaces: z
      .string()
      .nullable()
      .meta({ description: 'The id of the token that this one replaces.' }),
  })
  .meta({ id: 'ScimToken', description: 'A SCIM token, without its secret.' });
/** The type of a SCIM token in the JSON of the API, by which the compiler checks answers. */
export type ScimTokenJson = z.output<typeof SCIM_TOKEN_JSON>;

/** A SCIM write of an identity provider that was refused, or that was applied except for a part. */
export const SCIM_REFUSAL_JSON = z
  .object({
    token_id: z.string().describe('The id of the token.'),
    resource_type: z.string().meta({ description: '`User`, `Group` or `Bulk`.' }),
    resource_id: z
      .string()
      .nullable()
      .meta({ description: 'Null for a resource that does not exist.' }),
    method: z.string().describe('The method of the request.'),
    reason: z.string().meta({
      description: 'The code of the error; `left_out` where the write was applied without a part.',
    }),
    detail: z.string().describe('The fact in words.'),
    count: z.int().describe('The number of such writes.'),
    first_at: z.iso.datetime().describe('The time of the first one.'),
    last_at: z.iso.datetime().describe('The time of the last one.'),
  })
  .meta({
    id: 'ScimRefusal',
    description: 'Writes of an identity provider that were refused, or applied without a part.',
  });

/**
 * The valid SCIM tokens of an organization, and the refused writes of the clients that used them.
 */
export const SCIM_TOKENS_JSON = z
  .object({
    tokens: z.array(SCIM_TOKEN_JSON).describe('The valid tokens.'),
    refused_writes: z.array(SCIM_REFUSAL_JSON).describe('The refused writes of the last 30 days.'),
  })
  .describe('The SCIM tokens of the organization.');
/**
 * The type of a refused SCIM write in the JSON of the API, by which the compiler checks answers.
 */
export type ScimRefusalJson = z.output<typeof SCIM_REFUSAL_JSON>;

/**
 * Renders a refused SCIM write as JSON. The id of the resource is null if the resource does not
 * exist.
 */
export function scimRefusalJson(refusal: ListedRefusal): ScimRefusalJson {
  return {
    token_id: refusal.tokenId,
    resource_type: refusal.resourceType,
    resource_id: refusal.resourceId === '' ? null : refusal.resourceId,
    method: refusal.method,
    reason: refusal.reason,
    detail: refusal.detail,
    count: refusal.count,
    first_at: refusal.firstAt.toISOString(),
    last_at: refusal.lastAt.toISOString(),
  };
}

/** A new SCIM token with its secret. No other answer contains the secret. */
export const NEW_TOKEN_JSON = z
  .object({
    id: z.string().describe('The id of the token.'),
    token: z.string().describe('The token. Only this answer has it.'),
    description: z.string().describe('What the token is for.'),
    created_at: z.iso.datetime().describe('The time of its creation.'),
    expires_at: z.iso.datetime().describe('The time at which it expires.'),
    membership: z
      .enum(MEMBERSHIPS)
      .meta({ description: 'The membership setting of the organization, from this token on.' }),
  })
  .meta({ id: 'NewScimToken', description: 'A new SCIM token with its secret.' });
/**
 * The type of a new SCIM token with its secret in the JSON of the API, by which the compiler checks
 * answers.
 */
export type NewTokenJson = z.output<typeof NEW_TOKEN_JSON>;

/** Renders a SCIM token as JSON, without its secret. */
export function scimTokenJson(token: ListedToken): ScimTokenJson {
  return {
    id: token.id,
    description: token.description,
    created_by: token.createdBy,
    created_by_email: token.createdByEmail,
    created_at: token.createdAt.toISOString(),
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    expires_at: token.expiresAt.toISOString(),
    expires_soon: token.expiresSoon,
    replaces: token.replaces,
  };
}

/** Renders a new SCIM token as JSON, with its secret. */
export function newTokenJson({ scimToken, secret, membership }: NewToken): NewTokenJson {
  return {
    id: scimToken.id,
    token: secret,
    description: scimToken.description,
    created_at: scimToken.createdAt.toISOString(),
    expires_at: scimToken.expiresAt.toISOString(),
    membership,
  };
}
