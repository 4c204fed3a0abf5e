import type { EventFacts } from '#domain/audit/audit-filter.js';
import type { AuditType } from '#domain/audit/audit-event.js';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';

/**
 * A part of a sentence: fixed words of the product, or a name that a user, an application or a
 * provider chose. The page isolates names (`<bdi>`), so that letters that run from right to left do
 * not reorder the words around them.
 */
export interface SentencePart {
  readonly text: string;
  readonly isName: boolean;
}

/** The most characters of a name in a sentence. */
const LONGEST_NAME = 80;

/**
 * The sentence for each type of event. `{name}` stands for a name of the event. If the event lacks
 * the name, the part in brackets around it is left out.
 */
const SENTENCES: Partial<Record<AuditType, string>> = {
  login_success: '{actor} logged in[ with the key “{key}”][, a {model}]',
  login_failed: 'A login[ of {subject}][ with the key “{key}”] was refused[: {reason}]',
  enrollment: '{subject} enrolled a first key[, a {model}]',
  enrollment_refused: 'A key of {subject} was refused[: {reason}]',
  logout: '{actor} logged out',
  session_ended: '{actor} ended a session[ of {client}]',
  key_registered: '{subject} added the key “{key}”[, a {model}]',
  key_removed: '{subject} removed the key “{key}”[, a {model}]',
  key_renamed: '{subject} renamed the key “{earlier_name}” to “{key}”',
  email_changed: 'The address of a member changed[ from {from}][ to {to}]',
  identity_bound: '{subject} signed in at {provider} for the first time',
  identity_bind_refused: 'A sign-in of {subject} at {provider} was refused[: {reason}]',
  identity_unbound: '{actor} unbound {subject} from {issuer}',
  upstream_login: '{subject} signed in at {provider}',
  upstream_login_refused: 'A sign-in of {subject} at {provider} was refused[: {reason}]',
  enrollment_pass_used: '{subject} used a pass to enroll a key',
  enrollment_pass_created: '{actor} gave {subject} a pass to enroll a key',
  enrollment_pass_revoked: '{actor} revoked the pass of {subject}',
  enrollment_pass_waived: '{actor} lifted the demand for a pass from {subject}',
  device_approved: '{actor} approved a device for {client}',
  admin_access_refused: '{actor} was refused what is for admins[: {method} {path}]',
  ssh_credential: '{actor} got an SSH certificate[, serial {serial}][, for {principals}]',
  ssh_credential_withheld: 'An SSH certificate of {actor} was withheld[: {reason}]',
  aws_credential: '{actor} got a token for AWS[, role {role_arn}]',
  github_credential:
    '{actor} got a token for GitHub[, owner {owner}][, repositories {repositories}]',
  github_token_revoked: 'A GitHub token of {subject} was revoked[: {reason}]',
  github_revocation_failed: 'A GitHub token of {subject} could not be revoked[: {outcome}]',
  token_exchange: '{actor} got a token of {client}[ for {audience}]',
  oauth_token_issued: '{actor} logged in to {client}[, with the scope {scope}]',
  oauth_access_ended: '{actor} ended the access of {client}',
  ssh_certificate_revoked: '{actor} revoked the SSH certificate[ {serial}]',
  oauth_token_revoked: 'Tokens of {client} were revoked[: {reason}]',
  oauth_client_registered: '{actor} registered the application {client}',
  oauth_client_updated: '{actor} changed the application {client}[: {changed}]',
  oauth_client_deleted: '{actor} deleted the application {client}',
  application_approved: '{actor} approved the application {client}',
  notice_dead_lettered: '{client} did not hear that the access of {subject} ended[: {result}]',
  access_refused: '{actor} was refused {target}[: {why}]',
  access_ended: '{subject} lost the reach of {target}[: {why}]',
  oauth_secret_added: '{actor} added a secret to the application {client}',
  oauth_secret_revoked: '{actor} revoked a secret of the application {client}',
  admin_promote: '{actor} made {subject} an admin',
  admin_demote: '{actor} took the role of admin from {subject}',
  admin_deactivate: '{actor} deactivated {subject}',
  admin_activate: '{actor} activated {subject}',
  admin_revoke_credentials: '{actor} revoked the keys and credentials of {subject}',
  admin_remove_user: '{actor} removed {subject}',
  org_updated: '{actor} changed the settings of the organization',
  org_issuer_claimed: '{actor} claimed the issuer label {label}',
  org_issuer_activated: '{actor} switched the issuer of the organization on',
  org_issuer_deactivated: '{actor} switched the issuer of the organization off',
  org_issuer_released: '{actor} released the issuer label {label}',
  org_issuer_key_rotated: '{actor} rotated the signing key of the issuer',
  org_provider_allowed: '{actor} allowed the identity provider {provider}',
  org_provider_withdrawn: '{actor} withdrew the identity provider {provider}',
  scim_request_refused: 'A change[ of {subject}] by the identity provider was refused[: {reason}]',
  scim_token_created: '{actor} made the SCIM token[ “{description}”]',
  scim_token_revoked: '{actor} revoked a SCIM token',
  api_token_created: '{actor} made the API token[ “{name}”]',
  api_token_rotated: '{actor} made the successor of the API token[ “{name}”]',
  api_token_revoked: '{actor} revoked the API token[ “{name}”][: {reason}]',
  event_receiver_created: '{actor} made the event receiver “{name}”[ at {host}]',
  event_receiver_updated: '{actor} changed the event receiver “{name}”[: {changed}]',
  event_receiver_secret_rotated: '{actor} replaced the secret of the event receiver “{name}”',
  event_receiver_deleted: '{actor} removed the event receiver “{name}”[ at {host}]',
  event_receiver_tested: '{actor} tested the event receiver “{name}”',
  secret_confirmed: '{actor} confirmed a secret after the database had lost changes',
  org_domain_added: '{actor} added the domain {domain}',
  org_domain_verified: '{actor} proved the domain {domain}',
  org_domain_removed: '{actor} removed the domain {domain}',
  org_domain_unverified: 'The domain {domain} is not proven any more',
  domain_assigned: 'The operator of the service assigned the domain {domain}',
  domain_released: 'The operator of the service released the domain {domain}',
  audit_question_saved: '{actor} saved the question “{name}”',
  audit_question_removed: '{actor} removed the question “{name}”',
  github_installation_linked: '{actor} linked the GitHub installation of {owner}',
  github_installation_unlinked: 'The GitHub installation of {owner} was unlinked',
  github_installation_changed: 'The GitHub installation of {owner} changed[: {github_action}]',
};

/**
 * The sentences for events in which one person acted on another. Most events of these types are
 * about the person's own account.
 */
const BY_ANOTHER: Partial<Record<AuditType, string>> = {
  session_ended: '{actor} ended a session of {subject}[ at {client}]',
  key_removed: '{actor} removed the key “{key}” of {subject}[, a {model}]',
};

/** The words that stand in a sentence for a name that the event lacks. */
const DEFAULTS: Readonly<Record<string, string>> = {
  actor: 'The service',
  subject: 'an unknown person',
  client: 'an application',
  provider: 'an identity provider',
};

/**
 * Describes an event in a sentence, with the names that people and things had at the time of the
 * event.
 */
export function sentenceOf(row: EventFacts): SentencePart[] {
  const template = templateOf(row);
  const names = namesOf(row);
  if (template === undefined) {
    const about = names['actor'] ?? names['subject'];
    return [...(about === undefined ? [] : [name(about), words(': ')]), words(labelOf(row.type))];
  }
  const kept = template.replaceAll(/\[([^\]]*)\]/g, (_, part: string) =>
    [...part.matchAll(/\{(\w+)\}/g)].every(([, key = '']) => names[key] !== undefined) ? part : '',
  );
  return kept.split(/(\{\w+\})/).flatMap((part): SentencePart[] => {
    const key = /^\{(\w+)\}$/.exec(part)?.[1];
    if (key === undefined) return part === '' ? [] : [words(part)];
    const known = names[key];
    return [known === undefined ? words(DEFAULTS[key] ?? '') : name(known)];
  });
}

/**
 * The sentences for signals (security events about users) that an application did not accept, and
 * for audit events that an event receiver did not accept. For every other signal, and for a logout
 * notice, the sentence says that access has ended.
 */
const UNHEARD: Readonly<Record<string, string>> = {
  'audit-webhook': 'The event receiver “{name}” did not take events[: {result}]',
  'audit-otlp': 'The event receiver “{name}” did not take events[: {result}]',
  'credential-change': '{client} did not hear that a security key of {subject} changed[: {result}]',
  'session-established': '{client} did not hear that {subject} signed in to it[: {result}]',
  'account-enabled': '{client} did not hear that {subject} was activated[: {result}]',
  verification: '{client} did not take an event about its stream[: {result}]',
  'stream-updated': '{client} did not take an event about its stream[: {result}]',
};

function templateOf({ type, actorId, subjectId, details }: EventFacts): string | undefined {
  if (type === 'admin_promote' && actorId !== null && actorId === subjectId) {
    return '{subject} became an admin';
  }
  if (type === 'scim_operation') return provisioningTemplate(details);
  if (type === 'access_rule_changed')
    return RULE_CHANGES[String(details['change'])] ?? RULE_CHANGED;
  if (type === 'notice_dead_lettered') return UNHEARD[String(details['notice'])] ?? SENTENCES[type];
  const isByAnother = actorId !== null && subjectId !== null && actorId !== subjectId;
  return (isByAnother ? BY_ANOTHER[type as AuditType] : undefined) ?? SENTENCES[type as AuditType];
}

const RULE_CHANGED = '{actor} changed who may reach {target}[: {access}]';

/** The sentences for changes of a target, by the kind of change. */
const RULE_CHANGES: Readonly<Record<string, string>> = {
  created: '{actor} added {target}',
  changed: '{actor} changed {target}',
  deleted: '{actor} deleted {target}',
};

/** The words before the name of a target in a sentence, by the kind of target. */
const TARGETS: Readonly<Record<string, string>> = {
  application: 'the application',
  aws_role: 'the AWS role',
  host_group: 'the hosts',
  github_installation: 'the GitHub owner',
};

/**
 * The words for the reason why a person was refused or lost access. A key of this table consists of
 * the type of the event and the value of its detail `rule`.
 */
const REASONS: Readonly<Record<string, string>> = {
  'access_refused assignment': 'not assigned',
  'access_refused condition': 'the touch does not meet the conditions',
  'access_ended membership': 'no longer in an assigned group',
  'access_ended assignment': 'no longer assigned',
  'access_ended rule': 'the rule changed',
  'access_ended condition': 'the touch does not meet a new condition',
  'access_ended target': 'the target was deleted',
};

const ACCESS: Readonly<Record<string, string>> = {
  everyone: 'everyone',
  assigned: 'only assigned people',
};

/** Returns the words for an event about a target. A role that a user requests may have no name. */
function wordsOfTarget({ type, details }: EventFacts): Record<string, string | undefined> {
  const { target, rule } = details;
  if (typeof target !== 'object' || target === null) return {};
  const { kind, name: named } = target as { kind?: unknown; name?: unknown };
  const { access } = Object(rule) as { access?: unknown };
  return {
    target: textOf([TARGETS[String(kind)] ?? 'a target', textOf(named)].filter(Boolean).join(' ')),
    why: REASONS[`${type} ${String(rule)}`],
    access: ACCESS[String(access)],
  };
}

/** The words for the operations of provisioning by SCIM. */
const PROVISIONED: Readonly<Record<string, string>> = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
};

function provisioningTemplate({ operation, resource_type: type }: EventFacts['details']): string {
  const verb = PROVISIONED[String(operation)] ?? 'changed';
  const thing = type === 'Group' ? 'group' : 'member';
  return `The identity provider ${verb} the ${thing}[ {subject}][ {display_name}]`;
}

/** Returns in words the object of an event: an application, a credential, or a key. */
export function thingOf(row: EventFacts): string {
  const names = namesOf(row);
  const { client, key } = names;
  switch (row.type) {
    case 'ssh_credential':
    case 'ssh_credential_withheld':
      return `SSH certificate ${names['serial'] ?? ''}`.trimEnd();
    case 'aws_credential':
      return `AWS ${names['role_arn'] ?? 'token'}`;
    case 'github_credential':
      return `GitHub ${names['owner'] ?? 'token'}`;
    case 'access_rule_changed':
    case 'access_refused':
    case 'access_ended':
      return names['target'] ?? 'a target';
    default:
      break;
  }
  if (client !== undefined) return client;
  if (row.type.startsWith('login') || row.type.startsWith('key_')) {
    return key === undefined ? 'Security key' : `Key ${key}`;
  }
  return names['model'] ?? names['provider'] ?? names['domain'] ?? names['description'] ?? '';
}

/**
 * Returns the name of the subject of an event, or else the name of its actor; empty without both.
 */
export function personOf(row: EventFacts): string {
  const names = namesOf(row);
  return names['subject'] ?? names['actor'] ?? '';
}

const WRITTEN: Readonly<Record<string, string>> = {
  scim: 'SCIM',
  ssh: 'SSH',
  aws: 'AWS',
  github: 'GitHub',
  oauth: 'OAuth',
  org: 'organization',
};

/** Writes the type of an event in words: `scim_token_created` becomes `SCIM token created`. */
export function labelOf(type: string): string {
  const text = type
    .split('_')
    .map((word) => WRITTEN[word] ?? word)
    .join(' ');
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/**
 * Collects the names of an event by their placeholders in the sentences, such as `actor`. Each name
 * is cut to one line that is not too long.
 */
function namesOf(row: EventFacts): Readonly<Record<string, string | undefined>> {
  const { details } = row;
  const texts = Object.entries(details).map(([key, value]) => [key, textOf(value)] as const);
  const detail = Object.fromEntries(texts);
  return {
    ...detail,
    ...wordsOfTarget(row),
    actor: textOf(row.actorEmail) ?? textOf(row.actorId) ?? operatorOf(detail),
    // An application of another organization knows a person by the id in `sub`.
    subject: textOf(row.subjectEmail) ?? detail['email'] ?? textOf(row.subjectId) ?? detail['sub'],
    client: textOf(row.clientName) ?? detail['client_id'],
    key: detail['key_name'] ?? (row.type.startsWith('key_') ? detail['name'] : undefined),
    model: modelName(typeof details['aaguid'] === 'string' ? details['aaguid'] : null) ?? undefined,
  };
}

/**
 * Names the operator of the service by the account in the operating system, because the operator is
 * no user; undefined if the operator did not act.
 */
function operatorOf({ by, os_user: user }: Readonly<Record<string, string | undefined>>) {
  return by === 'operator' ? `The operator ${user ?? ''}`.trimEnd() : undefined;
}

function textOf(value: unknown): string | undefined {
  if (value === null || value === undefined || value === '') return undefined;
  if (Array.isArray(value)) return textOf(value.map((each) => textOf(each) ?? '').join(', '));
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return shortened(text, LONGEST_NAME);
}

/** Cuts a text after `most` characters if it has more, and puts `…` at its end. */
export function shortened(text: string, most: number): string {
  const characters = Array.from(text.slice(0, 2 * most + 2));
  return characters.length > most ? `${characters.slice(0, most).join('')}…` : text;
}

function words(text: string): SentencePart {
  return { text, isName: false };
}

function name(text: string): SentencePart {
  return { text, isName: true };
}
