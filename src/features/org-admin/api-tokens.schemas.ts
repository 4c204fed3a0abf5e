import { BlockList } from 'node:net';
import { z } from 'zod';
import { parseNetwork } from '#domain/admin/audit-search/network.js';
import type { ListedApiToken, MadeApiToken } from '#domain/admin/organization/api-tokens.js';
import {
  API_SCOPES,
  ROTATE_SCOPE,
  type ApiToken,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import { isUuid } from '#platform/text/single-line.js';
import { LINE_OF_TEXT } from './organization.schemas.js';

/** The days until an API token expires: the default, and the largest number. */
const DAYS = { usual: 90, most: 365 } as const;

/**
 * The hours for which an old API token stays valid after its rotation: the default, and the largest
 * number.
 */
const OVERLAP = { usual: 24, most: 72 } as const;

/** The largest number of networks, and of SCIM tokens, that an API token may name. */
const MOST_NAMED = 20;

/**
 * The shortest prefix of a network that a token may allow. The keys are the bits of an IP address:
 * 32 for IPv4, 128 for IPv6. A shorter prefix is refused, because it would allow very many IP
 * addresses.
 */
const SHORTEST_PREFIX = { 32: 8, 128: 16 } as const;

/**
 * The IPv6 addresses that stand for IPv4 addresses (RFC 4291 §2.5.5.2). The service writes the IP
 * address of such a client as IPv4, so a network of these IPv6 addresses would never match.
 */
const MAPPED_IPV4 = new BlockList();
MAPPED_IPV4.addSubnet('::ffff:0:0', 96, 'ipv6');

const days = z.int().min(1).max(DAYS.most);

/**
 * The hours for which an old token stays valid beside the new token after a rotation; 0 ends the
 * old token at once.
 */
export const OVERLAP_HOURS = z
  .int()
  .min(0)
  .max(OVERLAP.most)
  .default(OVERLAP.usual)
  .meta({ description: 'The hours for which the old token stays valid. 0 ends it at once.' });

const network = z
  .string()
  .max(64)
  .transform((text, context): string => {
    const { text: read, bits } = parseNetwork(text) ?? {};
    const [address = '', length] = read?.split('/') ?? [];
    const prefix = Number(length);
    if (bits === 128 && prefix >= 96 && MAPPED_IPV4.check(address, 'ipv6')) {
      const message = 'must be written as IPv4, for example 192.0.2.0/24';
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    }
    if (read !== undefined && prefix >= SHORTEST_PREFIX[bits === 32 ? 32 : 128]) return read;
    const message = 'must be an address, or a network of at least /8 (IPv4) or /16 (IPv6)';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });

const scimTokenId = z.string().refine(isUuid, 'must be the id of a SCIM token');

/** The body of `POST /api/v1/org/api-tokens`. */
export const CREATE_API_TOKEN = z
  .strictObject({
    name: LINE_OF_TEXT.describe('What the token is for.'),
    scopes: z
      .array(z.enum(API_SCOPES))
      .min(1, 'must not be empty')
      .max(API_SCOPES.length)
      .describe('What the token may do.'),
    expires_in_days: days.default(DAYS.usual).describe('The days until it expires.'),
    allowed_cidrs: z
      .array(network)
      .max(MOST_NAMED, `must have at most ${MOST_NAMED} networks`)
      .default([])
      .meta({ description: 'The networks from which the token is accepted; empty for all.' }),
    scim_token_ids: z
      .array(scimTokenId)
      .max(MOST_NAMED, `must have at most ${MOST_NAMED} ids`)
      .default([])
      .meta({ description: `The SCIM tokens that the scope \`${ROTATE_SCOPE}\` may rotate.` }),
  })
  .superRefine(({ scopes, allowed_cidrs: cidrs, scim_token_ids: ids }, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const rotates = scopes.includes(ROTATE_SCOPE);
    if (rotates && cidrs.length === 0) {
      refuse('allowed_cidrs', `must not be empty with the scope ${ROTATE_SCOPE}`);
    }
    if (rotates !== ids.length > 0) {
      refuse('scim_token_ids', `must be set with the scope ${ROTATE_SCOPE}, and only then`);
    }
  })
  .describe('The token to create.');
/** The body of `POST /api/v1/org/api-tokens` after validation, as the handler gets it. */
export type CreateApiToken = z.output<typeof CREATE_API_TOKEN>;

/** The body of `POST /api/v1/org/api-tokens/{id}/rotate`, which may be left out. */
export const ROTATE_API_TOKEN = z
  .strictObject({
    expires_in_days: days
      .exactOptional()
      .meta({ description: 'By default the days for which the old token was made.' }),
    overlap_hours: OVERLAP_HOURS,
  })
  .prefault({})
  .describe('The times of the new and of the old token. The body may be left out.');
/**
 * The body of `POST /api/v1/org/api-tokens/{id}/rotate` after validation, as the handler gets it.
 */
export type RotateApiToken = z.output<typeof ROTATE_API_TOKEN>;

/** The path parameter of a token. A text that is no UUID gets 404, and not 400. */
export const API_TOKEN_ID = z.object({ id: z.string().describe('The id of the API token.') });

/** An API token in the JSON of the API, without its secret. */
export const API_TOKEN_JSON = z
  .object({
    id: z.string().describe('The id of the token.'),
    name: z.string().describe('What the token is for.'),
    scopes: z.array(z.enum(API_SCOPES)).readonly().describe('What the token may do.'),
    scim_token_ids: z
      .array(z.string())
      .readonly()
      .meta({ description: 'The SCIM tokens that it may rotate. They follow each rotation.' }),
    allowed_cidrs: z
      .array(z.string())
      .readonly()
      .describe('The networks from which it is accepted; empty for all.'),
    created_by: z.string().describe('The id of the admin who made it.'),
    created_by_email: z.string().nullable().describe('The address of that admin at the time.'),
    created_at: z.iso.datetime().describe('The time of its creation.'),
    last_used_at: z.iso.datetime().nullable().describe('The time of its last use, to the minute.'),
    expires_at: z.iso.datetime().describe('The time at which it expires.'),
    maker_demoted_at: z.iso.datetime().nullable().meta({
      description: 'When its maker lost the role of admin. It rotates nothing from then on.',
    }),
    replaces: z
      .string()
      .nullable()
      .meta({ description: 'The id of the token whose successor it is.' }),
  })
  .meta({ id: 'ApiToken', description: 'An API token, without its secret.' });
/** The type of an API token in the JSON of the API, by which the compiler checks answers. */
export type ApiTokenJson = z.output<typeof API_TOKEN_JSON>;

/** The API tokens of an organization in the JSON of the API. */
export const API_TOKENS_JSON = z
  .object({
    tokens: z
      .array(
        API_TOKEN_JSON.extend({
          expires_soon: z.boolean().describe('True within 30 days before the end.'),
        }).meta({ id: 'ListedApiToken', description: 'An API token in a list.' }),
      )
      .describe('The valid tokens.'),
    ended_with_maker: z
      .array(API_TOKEN_JSON)
      .describe('Tokens that ended with the access of their makers, for 30 days or until rotated.'),
  })
  .describe('The API tokens of the organization.');

/**
 * A new API token with its secret. The secret is only in the answers to the creation and the
 * rotation of the token.
 */
export const NEW_API_TOKEN_JSON = API_TOKEN_JSON.extend({
  token: z.string().describe('The token. Only this answer has it.'),
}).meta({ id: 'NewApiToken', description: 'A new API token with its secret.' });
/**
 * The type of a new API token with its secret in the JSON of the API, by which the compiler checks
 * answers.
 */
export type NewApiTokenJson = z.output<typeof NEW_API_TOKEN_JSON>;

/** Renders an API token as JSON, without its secret. */
export function apiTokenJson(token: ApiToken): ApiTokenJson {
  return {
    id: token.id,
    name: token.name,
    scopes: token.scopes,
    scim_token_ids: token.scimTokenIds,
    allowed_cidrs: token.allowedCidrs,
    created_by: token.createdBy,
    created_by_email: token.createdByEmail,
    created_at: token.createdAt.toISOString(),
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
    expires_at: token.expiresAt.toISOString(),
    maker_demoted_at: token.makerDemotedAt?.toISOString() ?? null,
    replaces: token.replaces,
  };
}

/** Renders a valid API token as JSON for a list, with the mark that it expires soon. */
export function listedApiTokenJson(token: ListedApiToken) {
  return { ...apiTokenJson(token), expires_soon: token.expiresSoon };
}

/** Renders a new API token as JSON, with the secret that no other answer has. */
export function newApiTokenJson({ apiToken, secret }: MadeApiToken): NewApiTokenJson {
  return { ...apiTokenJson(apiToken), token: secret };
}
