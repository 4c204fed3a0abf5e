import { z } from 'zod';
import { KEY_QUERY } from '#domain/admin/members/key-search.js';
import type { ListedKey } from '#domain/admin/members/key-search.repository.js';
import type { KeyPage } from '#domain/admin/members/member-records.service.js';
import { isFipsModel, modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { FORMAT_QUERY, type ListFile } from '#platform/http/files/line-file.js';
import { columnsOfJson } from '#platform/text/csv.js';

/** The query of `GET /api/v1/org/keys`. `format` selects a page as JSON, or a file. */
export const KEYS_QUERY = KEY_QUERY.safeExtend(FORMAT_QUERY);
/** The query of `GET /api/v1/org/keys` after validation. */
export type KeysQuery = z.output<typeof KEYS_QUERY>;

const time = z.iso.datetime({ offset: true });

/** A security key with its member, in the JSON of the API. */
const LISTED_KEY_JSON = z.object({
  member_id: z.guid(),
  email: z.string().nullable(),
  name: z.string().nullable(),
  /** False for a deactivated member. */
  active: z.boolean(),
  key_id: z.guid(),
  key_name: z.string(),
  /** The id of the model (AAGUID); null for a key whose attestation states none. */
  aaguid: z.string().nullable(),
  /** The vendor's name of the model; null for a model that is not known. */
  model: z.string().nullable(),
  /** True if the model is FIPS 140 certified. */
  fips: z.boolean(),
  /** True if the key verifies its user, by a PIN or a fingerprint. */
  user_verification: z.boolean(),
  /** The format of the attestation by which the key was enrolled: `packed` or `fido-u2f`. */
  attestation: z.string(),
  created_at: time,
  last_used_at: time.nullable(),
});
type ListedKeyJson = z.output<typeof LISTED_KEY_JSON>;

/** A page of keys. */
export const KEYS_JSON = z.object({
  keys: z.array(LISTED_KEY_JSON),
  next: z.string().nullable(),
});
/** The type of a page of keys in the JSON of the API. */
export type KeysJson = z.output<typeof KEYS_JSON>;

/** Renders a page of keys as JSON. */
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

/** The keys as a file: one line has what a page of the API shows of a key. */
export const KEYS_FILE: ListFile<ListedKey, ListedKeyJson> = {
  name: 'keys',
  render: listedKeyJson,
  columns: columnsOfJson(Object.keys(LISTED_KEY_JSON.shape)),
};
