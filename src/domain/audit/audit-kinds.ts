import { AUDIT_CLASS, AUDIT_TYPES, type AuditClass, type AuditType } from './audit-event.js';
import { NOTICED, type NoticedType } from './notices/noticed-types.js';

/** The kinds into which the admin console groups events. Each type of event belongs to one kind. */
export const AUDIT_KINDS = {
  logins: 'Logins',
  refusals: 'Refusals',
  keys: 'Security keys',
  credentials: 'Credentials and tokens',
  members: 'Members',
  provisioning: 'Provisioning by SCIM',
  applications: 'Applications',
  organization: 'The organization',
} as const;

/** The name of a kind of events. */
export type AuditKind = keyof typeof AUDIT_KINDS;

/**
 * The kinds of those event types for which {@link KIND_OF_PREFIX} and {@link KIND_OF_CLASS} would
 * give a wrong kind.
 */
const KIND_OF: Partial<Record<AuditType, AuditKind>> = {
  login_failed: 'refusals',
  enrollment_refused: 'refusals',
  identity_bind_refused: 'refusals',
  upstream_login_refused: 'refusals',
  admin_access_refused: 'refusals',
  ssh_credential_withheld: 'refusals',
  scim_request_refused: 'refusals',
  access_refused: 'refusals',
  enrollment: 'keys',
  key_registered: 'keys',
  key_removed: 'keys',
  key_renamed: 'keys',
  enrollment_pass_used: 'keys',
  enrollment_pass_created: 'members',
  enrollment_pass_revoked: 'members',
  enrollment_pass_waived: 'members',
  member_readmitted: 'members',
  member_parted: 'members',
  member_address_given: 'members',
  event_receiver_tested: 'organization',
};
const KIND_OF_CLASS: Readonly<Record<AuditClass, AuditKind>> = {
  auth: 'logins',
  oauth: 'credentials',
  admin: 'organization',
};
const KIND_OF_PREFIX: readonly (readonly [prefix: string, kind: AuditKind])[] = [
  ['admin_', 'members'],
  ['scim_', 'provisioning'],
  ['oauth_client_', 'applications'],
  ['oauth_secret_', 'applications'],
];

/**
 * Returns the kind of an event type. For a type that {@link KIND_OF} does not list, the beginning
 * of its name decides, or else its class.
 *
 * @param ofClass the class of the event, for a type that this version does not know
 */
export function kindOf(type: string, ofClass?: string): AuditKind {
  const known = AUDIT_TYPES.find((each) => each === type);
  const named = known && KIND_OF[known];
  if (named) return named;
  const byPrefix = KIND_OF_PREFIX.find(([prefix]) => type.startsWith(prefix));
  if (byPrefix) return byPrefix[1];
  const audited = known ? AUDIT_CLASS[known] : (ofClass as AuditClass | undefined);
  return KIND_OF_CLASS[audited ?? 'admin'] ?? 'organization';
}

/** The event types of each kind, in the order of the admin console. */
export const TYPES_OF_KIND: ReadonlyMap<AuditKind, readonly AuditType[]> = new Map(
  (Object.keys(AUDIT_KINDS) as AuditKind[]).map((kind) => [
    kind,
    AUDIT_TYPES.filter((type) => kindOf(type) === kind),
  ]),
);

const NOTICED_TYPES: readonly AuditType[] = Object.keys(NOTICED) as NoticedType[];

/**
 * Further groups of event types that a search offers. `access` has the events by which a user
 * logged in or got access to a target. `notices` has the enrollment of a first security key, and
 * the events of which the service notifies the people concerned. `changes` has the events of the
 * class `admin`, except operations of SCIM: acts of admins, users, the operator and the service.
 */
const GROUPS = {
  notices: ['enrollment', ...NOTICED_TYPES],
  access: [
    'login_success',
    'device_approved',
    'oauth_token_issued',
    'token_exchange',
    'ssh_credential',
    'aws_credential',
    'github_credential',
  ],
  changes: AUDIT_TYPES.filter((type) => AUDIT_CLASS[type] === 'admin' && type !== 'scim_operation'),
} as const satisfies Record<string, readonly AuditType[]>;

/**
 * Every value that the filter for event types accepts: a type, a kind, or a further group of types.
 */
export const TYPE_FILTERS = [
  ...AUDIT_TYPES,
  ...(Object.keys(AUDIT_KINDS) as AuditKind[]),
  ...(Object.keys(GROUPS) as (keyof typeof GROUPS)[]),
] as const;

/** A value that the filter for event types accepts, such as `logins` or `login_failed`. */
export type TypeFilter = (typeof TYPE_FILTERS)[number];

/** Returns the event types that a value of the filter stands for. */
export function typesOfFilter(value: TypeFilter): readonly string[] {
  if (value in GROUPS) return GROUPS[value as keyof typeof GROUPS];
  return TYPES_OF_KIND.get(value as AuditKind) ?? [value];
}
