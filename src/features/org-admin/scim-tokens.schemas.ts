import { z } from 'zod';
import type { Membership } from '#domain/organizations/membership.js';
import { LINE_OF_TEXT } from './organization.schemas.js';
import type {
  ListedToken,
  NewToken,
} from '#domain/organization-admin/organization-admin.service.js';

/** The days until a token expires. */
const DAYS = { usual: 90, most: 365 } as const;

/** `POST /api/v1/org/scim-tokens`. */
export const CREATE_TOKEN = z.strictObject({
  description: LINE_OF_TEXT,
  expires_in_days: z.int().min(1).max(DAYS.most).default(DAYS.usual),
  /** The id of the token that the new one replaces: both are valid until an admin ends the earlier one. */
  replaces: z.string().max(64, 'must have at most 64 characters').exactOptional(),
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
  /** The address of the admin at that time. */
  readonly created_by_email: string | null;
  readonly created_at: string;
  /** Accurate to the minute. */
  readonly last_used_at: string | null;
  readonly expires_at: string;
  /** True within 30 days before the end. */
  readonly expires_soon: boolean;
  /** The id of the token that this one replaces. */
  readonly replaces: string | null;
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
