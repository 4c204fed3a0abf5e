import { z } from 'zod';
import {
  isIssuerLabel,
  issuerOfLabel,
  LABEL_RULE,
} from '#domain/organization-issuers/issuer-label.js';
import {
  publishedKeys,
  type IssuerKeyState,
} from '#domain/organization-issuers/issuer-key-state.js';
import type { OrganizationIssuer } from '#domain/organization-issuers/organization-issuers.repository.js';

/** `POST /api/v1/org/issuer`. */
export const CLAIM_LABEL = z.strictObject({
  label: z.string().refine(isIssuerLabel, LABEL_RULE),
  active: z.boolean().default(false),
});
/** The result of {@link CLAIM_LABEL}. */
export type ClaimLabel = z.output<typeof CLAIM_LABEL>;

/** `PATCH /api/v1/org/issuer`. */
export const CHANGE_ISSUER = z.strictObject({ active: z.boolean() });
/** The result of {@link CHANGE_ISSUER}. */
export type ChangeIssuer = z.output<typeof CHANGE_ISSUER>;

/** `POST /api/v1/org/issuer/rotate`. */
export const ROTATE_KEY = z.strictObject({ emergency: z.boolean().default(false) });
/** The result of {@link ROTATE_KEY}. */
export type RotateKey = z.output<typeof ROTATE_KEY>;

/** A published key in the JSON of the API. */
export interface IssuerKeyJson {
  readonly kid: string;
  readonly state: IssuerKeyState;
  readonly created_at: string;
  readonly signs_from: string;
  /** Null: the key stays until a rotation. */
  readonly published_until: string | null;
}

/** An issuer in the JSON of the API. */
export interface IssuerJson {
  readonly label: string;
  readonly issuer: string;
  readonly active: boolean;
  readonly claimed_at: string;
  readonly keys: readonly IssuerKeyJson[];
}

/** Renders an issuer with the keys that it publishes now. */
export function issuerJson(issuer: OrganizationIssuer, baseUrl: string): IssuerJson {
  const { label, active, claimedAt, keys, now } = issuer;
  return {
    label,
    issuer: issuerOfLabel(baseUrl, label),
    active,
    claimed_at: claimedAt.toISOString(),
    keys: publishedKeys(keys, now).map((key) => ({
      kid: key.kid,
      state: key.state,
      created_at: key.createdAt.toISOString(),
      signs_from: key.signsFrom.toISOString(),
      published_until: key.publishedUntil?.toISOString() ?? null,
    })),
  };
}
