import { z } from 'zod';
import {
  isIssuerLabel,
  issuerOfLabel,
  LABEL_RULE,
} from '#domain/organizations/issuers/issuer-label.js';
import { publishedKeys } from '#domain/organizations/issuers/issuer-key-state.js';
import type { OrganizationIssuer } from '#domain/organizations/issuers/organization-issuers.repository.js';

/** The body of `POST /api/v1/org/issuer`: the label in the host name of the new issuer. */
export const CLAIM_LABEL = z
  .strictObject({
    label: z.string().refine(isIssuerLabel, LABEL_RULE).describe('The label in the host name.'),
    active: z.boolean().default(false).describe('True: AWS tokens come from it at once.'),
  })
  .describe('The label of the new issuer.');
/** The body of `POST /api/v1/org/issuer` after validation, as the handler gets it. */
export type ClaimLabel = z.output<typeof CLAIM_LABEL>;

/** The body of `PATCH /api/v1/org/issuer`, which switches the issuer on or off. */
export const CHANGE_ISSUER = z
  .strictObject({
    active: z.boolean().describe('True: the AWS tokens of the organization come from its issuer.'),
  })
  .describe('The switch of the issuer.');
/** The body of `PATCH /api/v1/org/issuer` after validation, as the handler gets it. */
export type ChangeIssuer = z.output<typeof CHANGE_ISSUER>;

/**
 * The body of `POST /api/v1/org/issuer/rotate`, which replaces the signing key. It may be left out.
 */
export const ROTATE_KEY = z
  .strictObject({
    emergency: z
      .boolean()
      .default(false)
      .describe('True: the old key ends at once, and so do the tokens that it signed.'),
  })
  .prefault({})
  .describe('How the key is replaced. The body may be left out.');
/** The body of `POST /api/v1/org/issuer/rotate` after validation, as the handler gets it. */
export type RotateKey = z.output<typeof ROTATE_KEY>;

/** A published key of an issuer in the JSON of the API. */
export const ISSUER_KEY_JSON = z
  .object({
    kid: z.string().describe('The id of the key.'),
    state: z
      .enum(['next', 'signing', 'retired'])
      .describe('`next` signs later, `retired` signs no more and is still published.'),
    created_at: z.iso.datetime().describe('The time of its creation.'),
    signs_from: z.iso.datetime().describe('The time from which it signs.'),
    published_until: z.iso
      .datetime()
      .nullable()
      .describe('The time until which it is published; null until a rotation.'),
  })
  .meta({ id: 'IssuerKey', description: 'A published key of an issuer.' });
/** The type of a published key in the JSON of the API, by which the compiler checks answers. */
export type IssuerKeyJson = z.output<typeof ISSUER_KEY_JSON>;

/** The issuer of an organization in the JSON of the API. */
export const ISSUER_JSON = z
  .object({
    label: z.string().describe('The label in the host name.'),
    issuer: z.string().describe('The URL of the issuer, for AWS.'),
    active: z.boolean().describe('True if the AWS tokens of the organization come from it.'),
    claimed_at: z.iso.datetime().describe('The time of the claim.'),
    keys: z.array(ISSUER_KEY_JSON).readonly().describe('The published keys.'),
  })
  .meta({ id: 'Issuer', description: 'The issuer of an organization.' });
/** The type of an issuer in the JSON of the API, by which the compiler checks answers. */
export type IssuerJson = z.output<typeof ISSUER_JSON>;

/** A response with the issuer of the organization; null if it has none. */
export const ISSUER_RESPONSE = z
  .object({ issuer: ISSUER_JSON.nullable().describe('The issuer; null if there is none.') })
  .meta({ id: 'IssuerResponse', description: 'The issuer of the organization, if it has one.' });
/**
 * The type of a response with the issuer of the organization, by which the compiler checks answers.
 */
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
