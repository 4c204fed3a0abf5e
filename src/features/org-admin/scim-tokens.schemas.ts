import { z } from 'zod';
import type { Membership } from '#domain/organizations/membership.js';
import type { ScimToken } from '#domain/scim-tokens/scim-tokens.repository.js';
import { LINE_OF_TEXT } from './organization.schemas.js';
import type { NewToken } from '#domain/organization-admin/organization-admin.service.js';

/** The days until a token expires. */
const DAYS = { usual: 90, most: 365 } as const;

/** `POST /api/v1/org/scim-tokens`. */
export const CREATE_TOKEN = z.strictObject({
  description: LINE_OF_TEXT,
  expires_in_days: z.int().min(1).max(DAYS.most).default(DAYS.usual),
});
/** The result of {@link CREATE_TOKEN}. */
export type CreateToken = z.output<typeof CREATE_TOKEN>;

/** An id that is not a UUID is the id of no token: 404, not 400. */
export const TOKEN_ID = z.object({ id: z.string() });

/** A token in the list of the API, without its secret. */
export interface ScimTokenJson {
  readonly id: string;
  readonly description: string;
  readonly created_by: string;
  readonly created_at: string;
  /** Accurate to the minute. */
  readonly last_used_at: string | null;
  readonly expires_at: string;
}

/** A new token with its secret, which the API returns once. */
export interface NewTokenJson {
  readonly id: string;
  readonly token: string;
  readonly description: string;
  readonly created_at: string;
  readonly expires_at: string;
  /** The membership setting of the organization, from this token on. */
  readonly membership: Membership;
}

/** Renders a token as JSON. */
export function scimTokenJson(token: ScimToken): ScimTokenJson {
  return {
    id: token.id,
    description: token.description,
    created_by: token.createdBy,
    created_at: token.createdAt.toISOString(),
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    expires_at: token.expiresAt.toISOString(),
  };
}

/** Renders a new token as JSON. */
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
