import { z } from 'zod';
import {
  isIssuerLabel,
  issuerOfLabel,
  LABEL_RULE,
} from '#domain/organizations/issuers/issuer-label.js';
import { publishedKeys } from '#domain/organizations/issuers/issuer-key-state.js';
import type { OrganizationIssuer } from '#domain/organizations/issuers/organization-issuers.repository.js';

/** The body of `POST /api/v1/org/issuer`: the label in the host name of the new issuer. */
export const CLAIM_LABEL = z.strictObject({
  label: z.string().refine(isIssuerLabel, LABEL_RULE),
  active: z.boolean().default(false),
});
/** The body of `POST /api/v1/org/issuer` after validation. */
export type ClaimLabel = z.output<typeof CLAIM_LABEL>;

/** The body of `PATCH /api/v1/org/issuer`, which switches the issuer on or off. */
export const CHANGE_ISSUER = z.strictObject({ active: z.boolean() });
/** The body of `PATCH /api/v1/org/issuer` after validation. */
export type ChangeIssuer = z.output<typeof CHANGE_ISSUER>;

/** The body of `POST /api/v1/org/issuer/rotate`, which replaces the signing key. */
export const ROTATE_KEY = z.strictObject({ emergency: z.boolean().default(false) });
/** The body of `POST /api/v1/org/issuer/rotate` after validation. */
export type RotateKey = z.output<typeof ROTATE_KEY>;

/** A published key of an issuer in the JSON of the API. */
export const ISSUER_KEY_JSON = z
  .object({
    kid: z.string(),
    state: z.enum(['next', 'signing', 'retired']),
    created_at: z.iso.datetime(),
    signs_from: z.iso.datetime(),
    published_until: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'Null: the key stays until a rotation.' }),
  })
  .meta({ id: 'IssuerKey' });
/** The type of a published key in the JSON of the API. */
export type IssuerKeyJson = z.output<typeof ISSUER_KEY_JSON>;

/** The issuer of an organization in the JSON of the API. */
export const ISSUER_JSON = z
  .object({
    label: z.string(),
    issuer: z.string(),
    active: z.boolean(),
    claimed_at: z.iso.datetime(),
    keys: z.array(ISSUER_KEY_JSON).readonly(),
  })
  .meta({ id: 'Issuer' });
/** The type of an issuer in the JSON of the API. */
export type IssuerJson = z.output<typeof ISSUER_JSON>;

/** A response with the issuer of the organization; null if it has none. */
export const ISSUER_RESPONSE = z.object({ issuer: ISSUER_JSON.nullable() });
/** The type of a response with the issuer of the organization. */
export type IssuerResponse = z.output<typeof ISSUER_RESPONSE>;

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
