import { z } from 'zod';
import type { Membership } from '#domain/organizations/membership.js';
import type { ScimToken } from '#domain/scim-tokens/scim-tokens.repository.js';
import { LINE_OF_TEXT } from './line-of-text.js';
import type { NewToken } from './scim-tokens.service.js';

/** Days for which a token is good: 90 unless told, a year at most. */
const DAYS = { usual: 90, most: 365 } as const;

/** `POST /api/v1/org/scim-tokens`. */
export const CREATE_TOKEN = z.strictObject({
  description: LINE_OF_TEXT,
  expires_in_days: z.int().min(1).max(DAYS.most).default(DAYS.usual),
});
/** What {@link CREATE_TOKEN} makes of a body. */
export type CreateToken = z.output<typeof CREATE_TOKEN>;

/** An id of a form that none of ours has names nothing: 404, not 400. */
export const TOKEN_ID = z.object({ id: z.string() });

/** A token as the API lists it: never itself. */
export interface ScimTokenJson {
  readonly id: string;
  readonly description: string;
  readonly created_by: string;
  readonly created_at: string;
  /** To the minute. */
  readonly last_used_at: string | null;
  readonly expires_at: string;
}

/** A token as the API tells it when it is made, and never again. */
export interface NewTokenJson {
  readonly id: string;
  readonly token: string;
  readonly description: string;
  readonly created_at: string;
  readonly expires_at: string;
  /** The organization's, from this token on. */
  readonly membership: Membership;
}

/** Renders a token. */
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

/** Renders a token that was just made. */
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
