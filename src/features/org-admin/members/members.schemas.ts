import { z } from 'zod';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { isFipsModel, modelName } from '#domain/keys/authenticators/authenticator-models.js';
import type { Member } from '#domain/directory/users.repository.js';
import type { MemberPage, MemberRecord } from '#domain/admin/members/member-records.service.js';
import type { ListedMember } from '#domain/admin/members/member-search.repository.js';

/** The path parameter of a member. A text that is no UUID gets 404, and not 400. */
export const MEMBER_ID = z.object({ id: z.string().describe('The id of the member.') });

/** The path parameters of a session of a member. */
export const SESSION_OF_MEMBER = MEMBER_ID.extend({
  session_id: z.string().describe('The id of the session.'),
});
/** The path parameters of a key of a member. */
export const KEY_OF_MEMBER = MEMBER_ID.extend({
  key_id: z.string().describe('The id of the security key.'),
});

const time = z.iso.datetime({ offset: true });

/** The facts about a member that every answer shows. */
const MEMBER = z.object({
  id: z.guid().describe('The id of the member.'),
  email: z.string().nullable().describe('The address with which the member signs in.'),
  name: z.string().nullable().describe('The name.'),
  is_org_admin: z.boolean().describe('True for an admin of the organization.'),
  active: z.boolean().describe('False for a member who cannot sign in.'),
  scim_managed: z.boolean().describe('True if SCIM provisions the account.'),
  keys: z.int().describe('The number of enrolled security keys.'),
  created_at: time.describe('The time at which the account was created.'),
  twin_of: z
    .array(z.guid())
    .describe(
      'The ids of the SCIM records with whose address the member signed in. If one of them ends, so does the member.',
    ),
  twins: z
    .array(z.guid())
    .describe('The ids of the members who signed in with the address of this record.'),
  linked_to: z
    .array(z.guid())
    .describe(
      'The ids of linked accounts: one is a SCIM record whose userName is the address of the other. If one ends, the other is deactivated.',
    ),
  taken_over_at: time
    .nullable()
    .describe('The time at which a SCIM record took over the account of a member.'),
  withheld_address: z
    .string()
    .nullable()
    .describe('The userName of this record, with which a linked member signs in instead.'),
  shared_address: z
    .string()
    .nullable()
    .describe('An address of several SCIM records, with which none of them signs in.'),
});

/** {@link MEMBER} with the name that the OpenAPI document gives it, for the answers of the API. */
export const MEMBER_JSON = MEMBER.meta({
  id: 'Member',
  description: 'A member of the organization.',
});
/** The type of a member in the JSON of the API, by which the compiler checks answers. */
export type MemberJson = z.output<typeof MEMBER_JSON>;

/** The numbers of sessions, certificates and so on that a change of a member ends. */
export const ENDED_JSON = z
  .object({
    sessions: z.int().optional().describe('The ended sessions.'),
    certificates: z.int().optional().describe('The revoked SSH certificates.'),
    keys: z.int().optional().describe('The removed security keys.'),
    grants: z.int().optional().describe('The ended OAuth grants.'),
    tokens: z.int().optional().describe('The ended OAuth tokens.'),
    github_tokens: z.int().optional().describe('The ended GitHub tokens.'),
    ssh_keys: z.int().optional().describe('The SSH keys that were proven to be in a security key.'),
    applications: z.int().optional().describe('The applications that the member registered.'),
    enrollment_passes: z.int().optional().describe('The ended re-enrollment passes.'),
    api_tokens: z.int().optional().describe('The ended API tokens that the member made.'),
    event_receivers: z
      .int()
      .optional()
      .describe('The paused event receivers whose URL the member set.'),
  })
  .meta({
    id: 'Ended',
    description:
      'The numbers of what ended, by their kind. A kind of which nothing ends may be missing.',
  });

/** A member after a change, and the numbers of what the change ended. */
export const ENDED_MEMBER_JSON = MEMBER.extend({
  ended: ENDED_JSON,
}).meta({ id: 'ChangedMember', description: 'A member after a change, and what it ended.' });
/**
 * The type of a member after a change in the JSON of the API, by which the compiler checks answers.
 */
export type EndedMemberJson = z.output<typeof ENDED_MEMBER_JSON>;

/** The response to a change after which there is no member to show, such as a removal. */
export const ONLY_ENDED_JSON = z.object({ ended: ENDED_JSON }).describe('What the change ended.');
/**
 * The type of the response to a change after which there is no member to show, by which the
 * compiler checks answers.
 */
export type OnlyEndedJson = z.output<typeof ONLY_ENDED_JSON>;

/** A member in a list of the API, with the models and the last use of the member's keys. */
export const LISTED_MEMBER_JSON = MEMBER.extend({
  key_models: z
    .array(z.string().nullable())
    .describe('The names of the models of the keys; null for an unknown model.'),
  last_used_at: time.nullable().describe('The time of the last use of any key.'),
}).meta({ id: 'ListedMember', description: 'A member in a list.' });
/** The type of a member in a list in the JSON of the API, by which the compiler checks answers. */
export type ListedMemberJson = z.output<typeof LISTED_MEMBER_JSON>;

/** A page of members in the JSON of the API. */
export const MEMBERS_JSON = z
  .object({
    members: z.array(LISTED_MEMBER_JSON).describe('The members.'),
    complete: z.boolean().describe('False if more members match `q` than the service examines.'),
    next: z
      .string()
      .nullable()
      .describe('The value of `after` for the next page; null on the last page.'),
  })
  .meta({ id: 'MemberPage', description: 'A page of members.' });
/** The type of a page of members in the JSON of the API, by which the compiler checks answers. */
export type MembersJson = z.output<typeof MEMBERS_JSON>;

const application = z.object({
  client_id: z.string().describe('The `client_id` of the application.'),
  name: z.string().nullable().describe('Its name.'),
});

const KEY_OF_RECORD = z.object({
  id: z.guid().describe('The id of the key.'),
  name: z.string().describe('The name that the member gave it.'),
  aaguid: z.string().nullable().describe('The AAGUID of its model.'),
  model: z.string().nullable().describe('The name of its model; null for an unknown one.'),
  fips: z.boolean().describe('True for a model that is certified by FIPS 140.'),
  user_verification: z.boolean().describe('True if the key verified its user at the enrollment.'),
  created_at: time.describe('The time of its enrollment.'),
  last_used_at: time.nullable().describe('The time of its last use.'),
});

const SESSION_OF_RECORD = z.object({
  id: z.guid().describe('The id of the session.'),
  device: z.string().nullable().describe('The `User-Agent` of the request that opened it.'),
  address: z.string().nullable().describe('The IP address of that request.'),
  client: application.nullable().describe('Its client; null for a session of a browser.'),
  hardware_verified: z.boolean().describe('True if a security key verified it.'),
  created_at: time.describe('The time at which it was opened.'),
  expires_at: time.describe('The time at which it ends.'),
});

const CERTIFICATE_OF_RECORD = z.object({
  serial: z.string().describe('The serial number, in decimal.'),
  principals: z.array(z.string()).describe('The login names in the certificate.'),
  issued_at: time.describe('The time of its issue.'),
  valid_before: time.describe('The end of its validity.'),
});

const GITHUB_TOKEN_OF_RECORD = z.object({
  owner: z.string().describe('The organization or user of GitHub.'),
  repositories: z.array(z.string()).nullable().describe('Its repositories; null for all.'),
  issued_at: time.describe('The time of its issue.'),
  expires_at: time.describe('The time at which it expires.'),
});

const API_TOKEN_OF_RECORD = z.object({
  id: z.guid().describe('The id of the token.'),
  name: z.string().describe('Its name.'),
  scopes: z.array(z.string()).describe('Its scopes.'),
  expires_at: time.describe('The time at which it expires.'),
});

/**
 * A member with the security keys, the open sessions, and the credentials that were issued in the
 * name of the member.
 */
export const MEMBER_RECORD_JSON = MEMBER.extend({
  last_login_at: time.nullable().describe('The time of the last login.'),
  security_keys: z.array(KEY_OF_RECORD).describe('The security keys.'),
  sessions: z.array(SESSION_OF_RECORD).describe('The newest 50 sessions that are open.'),
  certificates: z
    .array(CERTIFICATE_OF_RECORD)
    .describe('The latest 5 SSH certificates that are not revoked.'),
  applications: z
    .array(application.extend({ last_granted_at: time.describe('The time of the last grant.') }))
    .describe('The applications at which the member has a live grant.'),
  owned_applications: z.array(application).describe('The applications that the member registered.'),
  github_tokens: z.array(GITHUB_TOKEN_OF_RECORD).describe('The valid GitHub tokens.'),
  api_tokens: z
    .array(API_TOKEN_OF_RECORD)
    .describe(
      'The API tokens that the member made. They end with the account; without the role of admin they rotate nothing, and end after 7 days.',
    ),
  event_receivers: z
    .array(
      z.object({
        id: z.guid().describe('The id of the receiver.'),
        name: z.string().describe('Its name.'),
      }),
    )
    .describe('The enabled event receivers whose URL the member set; they pause with its access.'),
  ending: z
    .object({
      deactivate: ENDED_JSON.describe('What a deactivation would end.'),
      revoke_credentials: ENDED_JSON.describe('What a revocation of all credentials would end.'),
      remove: ENDED_JSON.describe('What a removal would end.'),
    })
    .describe('What each of these changes would end now.'),
}).meta({ id: 'MemberRecord', description: 'A member with all that the member holds.' });
/**
 * The type of a member with the security keys in the JSON of the API, by which the compiler checks
 * answers.
 */
export type MemberRecordJson = z.output<typeof MEMBER_RECORD_JSON>;

type Shown = Omit<Member, 'revision'>;

/** Renders a member as JSON, with the number of the security keys, and without a list of them. */
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

/**
 * Renders a page of members as JSON. `complete` is false if more members match than the service
 * examines.
 */
export function membersJson({ members, isComplete, next }: MemberPage): MembersJson {
  return { members: members.map(listedMemberJson), complete: isComplete, next };
}

/**
 * Renders a member of a list as JSON, with the names of the key models; null for an unknown model.
 */
export function listedMemberJson(member: ListedMember): ListedMemberJson {
  return {
    ...memberJson(member),
    key_models: member.aaguids.map(modelName),
    last_used_at: member.lastUsedAt?.toISOString() ?? null,
  };
}

/**
 * Renders a member after a change as JSON, with the numbers of the sessions and credentials that
 * the change ended.
 */
export function endedMemberJson(member: Member, ended: RevokedCounts): EndedMemberJson {
  return { ...memberJson(member), ended };
}

/**
 * Renders a member as JSON with everything that the member holds, and with what each change would
 * end.
 */
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
