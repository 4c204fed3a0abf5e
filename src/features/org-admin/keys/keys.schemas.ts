import { z } from 'zod';
import { KEY_QUERY } from '#domain/admin/members/key-search.js';
import type { ListedKey } from '#domain/admin/members/key-search.repository.js';
import type { KeyPage } from '#domain/admin/members/member-records.service.js';
import { isFipsModel, modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { FORMAT_QUERY, type ListFile } from '#platform/http/files/line-file.js';
import { columnsOfJson } from '#platform/text/csv.js';

/** The query of `GET /api/v1/org/keys`. `format` selects a page as JSON, or a file. */
export const KEYS_QUERY = KEY_QUERY.safeExtend(FORMAT_QUERY);
/** The query of `GET /api/v1/org/keys` after validation, as the handler gets it. */
export type KeysQuery = z.output<typeof KEYS_QUERY>;

const time = z.iso.datetime({ offset: true });

/** A security key with its member, in the JSON of the API. */
const LISTED_KEY_JSON = z
  .object({
    member_id: z.guid().describe('The id of the member who has the key.'),
    email: z.string().nullable().describe('The address with which the member signs in.'),
    name: z.string().nullable().describe('The name of the member.'),
    active: z.boolean().describe('False for a member who cannot sign in.'),
    key_id: z.guid().describe('The id of the key.'),
    key_name: z.string().describe('The name that the member gave the key.'),
    aaguid: z
      .string()
      .nullable()
      .describe('The AAGUID of its model; null for a key whose attestation states none.'),
    model: z.string().nullable().describe('The name of its model; null for an unknown one.'),
    fips: z.boolean().describe('True for a model that is certified by FIPS 140.'),
    user_verification: z.boolean().describe('True if the key verified its user at the enrollment.'),
    attestation: z
      .string()
      .describe('The format of the attestation at the enrollment: `packed` or `fido-u2f`.'),
    created_at: time.describe('The time of its enrollment.'),
    last_used_at: time.nullable().describe('The time of its last use.'),
  })
  .meta({ id: 'ListedKey', description: 'A security key with its member, in a list.' });
type ListedKeyJson = z.output<typeof LISTED_KEY_JSON>;

/** A page of security keys in the JSON of the API. */
export const KEYS_JSON = z
  .object({
    keys: z.array(LISTED_KEY_JSON).describe('The security keys.'),
    next: z
      .string()
      .nullable()
      .describe('The value of `after` for the next page; null on the last page.'),
  })
  .meta({ id: 'KeyPage', description: 'A page of the security keys of the members.' });
/** The type of a page of keys in the JSON of the API, by which the compiler checks answers. */
export type KeysJson = z.output<typeof KEYS_JSON>;

/** Renders a page of security keys as JSON, each key with its member. */
export function keysJson({ keys, next }: KeyPage): KeysJson {
  return { keys: keys.map(listedKeyJson), next };
}

function listedKeyJson(key: ListedKey): ListedKeyJson {
  return {
    member_id: key.memberId,
    email: key.memberEmail,
    name: key.memberName,
    active: key.isMemberActive,
    key_id: key.id,
    key_name: key.name,
    aaguid: key.aaguid,
    model: modelName(key.aaguid),
    fips: isFipsModel(key.aaguid),
    user_verification: key.userVerification,
    attestation: key.attestation,
    created_at: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}

/** The format of a file of keys. A line has the same facts about a key as a page of the API. */
export const KEYS_FILE: ListFile<ListedKey, ListedKeyJson> = {
  name: 'keys',
  render: listedKeyJson,
  columns: columnsOfJson(Object.keys(LISTED_KEY_JSON.shape)),
};
