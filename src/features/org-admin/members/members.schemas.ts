import { z } from 'zod';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { isFipsModel, modelName } from '#domain/keys/authenticators/authenticator-models.js';
import type { Member } from '#domain/directory/users.repository.js';
import type { MemberPage, MemberRecord } from '#domain/admin/members/member-records.service.js';
import type { ListedMember } from '#domain/admin/members/member-search.repository.js';

/** The path parameter of a member. A text that is no UUID gets 404, and not 400. */
export const MEMBER_ID = z.object({ id: z.string() });

/** The path parameters of a session of a member. */
export const SESSION_OF_MEMBER = MEMBER_ID.extend({ session_id: z.string() });
/** The path parameters of a key of a member. */
export const KEY_OF_MEMBER = MEMBER_ID.extend({ key_id: z.string() });

const time = z.iso.datetime({ offset: true });

/** A member in the JSON of the API. */
export const MEMBER_JSON = z.object({
  id: z.guid(),
  email: z.string().nullable(),
  name: z.string().nullable(),
  is_org_admin: z.boolean(),
  active: z.boolean(),
  scim_managed: z.boolean(),
  /** The number of the member's enrolled security keys. */
  keys: z.int(),
  created_at: time,
  /**
   * The ids of the SCIM records with whose address the member signed in. The member is their twin:
   * if one of the records ends, the member ends.
   */
  twin_of: z.array(z.guid()),
  /** The ids of the members who signed in with the address of this SCIM record, and end with it. */
  twins: z.array(z.guid()),
  /**
   * The ids of the accounts that are linked to this one. Two accounts are linked if one is a SCIM
   * record and its userName is the address of the other. If one of them ends, the other is
   * deactivated.
   */
  linked_to: z.array(z.guid()),
  /**
   * The time at which a SCIM record took over the account of a member who had signed in before;
   * null otherwise.
   */
  taken_over_at: time.nullable(),
  /**
   * The address that this SCIM record has as its userName, but with which a linked member signs in
   * instead; null if there is none.
   */
  withheld_address: z.string().nullable(),
  /**
   * An e-mail address that several SCIM records have, but none as its userName, so that a sign-in
   * with it finds none of them; null if there is none.
   */
  shared_address: z.string().nullable(),
});
/** The type of a member in the JSON of the API. */
export type MemberJson = z.output<typeof MEMBER_JSON>;

/**
 * The numbers of sessions, certificates and so on that a change of a member ends, by their kind. A
 * kind of which nothing ends may be missing.
 */
export const ENDED_JSON = z.object({
  sessions: z.int().optional(),
  certificates: z.int().optional(),
  keys: z.int().optional(),
  grants: z.int().optional(),
  tokens: z.int().optional(),
  github_tokens: z.int().optional(),
  /** The number of SSH keys that are proven to be in a security key. */
  ssh_keys: z.int().optional(),
  /** The number of applications that the member registered. */
  applications: z.int().optional(),
  enrollment_passes: z.int().optional(),
  /** The number of API tokens that the member made. */
  api_tokens: z.int().optional(),
  /** The number of event receivers that are paused, because the member set their address. */
  event_receivers: z.int().optional(),
});

/** A member after a change, and the numbers of what the change ended. */
export const ENDED_MEMBER_JSON = MEMBER_JSON.extend({ ended: ENDED_JSON });
/** The type of a member after a change in the JSON of the API. */
export type EndedMemberJson = z.output<typeof ENDED_MEMBER_JSON>;

/** The response to a change after which there is no member to show, such as a removal. */
export const ONLY_ENDED_JSON = z.object({ ended: ENDED_JSON });
/** The type of the response to a change after which there is no member to show. */
export type OnlyEndedJson = z.output<typeof ONLY_ENDED_JSON>;

/** A page of members. */
export const MEMBERS_JSON = z.object({
  members: z.array(
    MEMBER_JSON.extend({
      /** The vendor's names of the models of the keys; null for a key of an unknown model. */
      key_models: z.array(z.string().nullable()),
      /** The time of the last use of any key. */
      last_used_at: time.nullable(),
    }),
  ),
  /** False if more members match `q` than the service examines, so that the list may lack some. */
  complete: z.boolean(),
  next: z.string().nullable(),
});
/** The type of a page of members in the JSON of the API. */
export type MembersJson = z.output<typeof MEMBERS_JSON>;

const application = z.object({ client_id: z.string(), name: z.string().nullable() });

/**
 * A member with the security keys, the open sessions, and the credentials that were issued in the
 * name of the member.
 */
export const MEMBER_RECORD_JSON = MEMBER_JSON.extend({
  last_login_at: time.nullable(),
  security_keys: z.array(
    z.object({
      id: z.guid(),
      name: z.string(),
      aaguid: z.string().nullable(),
      model: z.string().nullable(),
      fips: z.boolean(),
      user_verification: z.boolean(),
      created_at: time,
      last_used_at: time.nullable(),
    }),
  ),
  /** The newest 50 sessions that are open. */
  sessions: z.array(
    z.object({
      id: z.guid(),
      device: z.string().nullable(),
      address: z.string().nullable(),
      client: application.nullable(),
      hardware_verified: z.boolean(),
      created_at: time,
      expires_at: time,
    }),
  ),
  /** The latest 5 SSH certificates that are not revoked. */
  certificates: z.array(
    z.object({
      serial: z.string(),
      principals: z.array(z.string()),
      issued_at: time,
      valid_before: time,
    }),
  ),
  /** The applications at which the member has a live grant. */
  applications: z.array(application.extend({ last_granted_at: time })),
  owned_applications: z.array(application),
  github_tokens: z.array(
    z.object({
      owner: z.string(),
      repositories: z.array(z.string()).nullable(),
      issued_at: time,
      expires_at: time,
    }),
  ),
  /**
   * The API tokens that the member made. They end with the account or its access; when the member
   * is demoted, they rotate nothing more and end after 7 days.
   */
  api_tokens: z.array(
    z.object({
      id: z.guid(),
      name: z.string(),
      scopes: z.array(z.string()),
      expires_at: time,
    }),
  ),
  /** The enabled event receivers whose address the member set. They are paused with its access. */
  event_receivers: z.array(z.object({ id: z.guid(), name: z.string() })),
  /** The numbers of sessions, certificates and so on that each of these changes would end now. */
  ending: z.object({ deactivate: ENDED_JSON, revoke_credentials: ENDED_JSON, remove: ENDED_JSON }),
});
/** The type of a member with the security keys in the JSON of the API. */
export type MemberRecordJson = z.output<typeof MEMBER_RECORD_JSON>;

type Shown = Omit<Member, 'revision'>;

/** Renders a member, without sessions and keys, as JSON. */
export function memberJson(member: Shown): MemberJson {
  return {
    id: member.id,
    email: member.email,
    name: member.name,
    is_org_admin: member.isOrgAdmin,
    active: member.active,
    scim_managed: member.scimManaged,
    keys: member.keys,
    created_at: member.createdAt.toISOString(),
    twin_of: [...member.ties.twinOf],
    twins: [...member.ties.twins],
    linked_to: [...member.ties.linkedTo],
    taken_over_at: member.ties.takenOverAt?.toISOString() ?? null,
    withheld_address: member.ties.withheldAddress,
    shared_address: member.ties.sharedAddress,
  };
}

/** Renders a page of members as JSON. */
export function membersJson({ members, isComplete, next }: MemberPage): MembersJson {
  return { members: members.map(listedJson), complete: isComplete, next };
}

function listedJson(member: ListedMember): MembersJson['members'][number] {
  return {
    ...memberJson(member),
    key_models: member.aaguids.map(modelName),
    last_used_at: member.lastUsedAt?.toISOString() ?? null,
  };
}

/** Renders a member after a change that ended access. */
export function endedMemberJson(member: Member, ended: RevokedCounts): EndedMemberJson {
  return { ...memberJson(member), ended };
}

/** Renders the whole record of a member as JSON. */
export function memberRecordJson(record: MemberRecord): MemberRecordJson {
  const { member, lastLoginAt, ending } = record;
  return {
    ...memberJson(member),
    last_login_at: lastLoginAt?.toISOString() ?? null,
    security_keys: record.keys.map((key) => ({
      ...key,
      model: modelName(key.aaguid),
      fips: isFipsModel(key.aaguid),
    })),
    sessions: record.sessions.map(({ client_id: clientId, client_name: name, ...session }) => ({
      ...session,
      client: clientId === null ? null : { client_id: clientId, name },
    })),
    certificates: record.certificates.map((each) => ({
      ...each,
      principals: [...each.principals],
    })),
    applications: [...record.applications],
    owned_applications: [...record.owned],
    github_tokens: record.githubTokens.map((token) => ({
      ...token,
      repositories: token.repositories && [...token.repositories],
    })),
    event_receivers: record.eventReceivers.map(({ id, name }) => ({ id, name })),
    api_tokens: record.apiTokens.map(({ id, name, scopes, expiresAt }) => ({
      id,
      name,
      scopes: [...scopes],
      expires_at: expiresAt.toISOString(),
    })),
    ending,
  };
}
