import type { AuditType } from '#domain/audit/audit-event.js';
import { toSingleLine } from '#platform/text/single-line.js';
import type { OwnEvent } from './own-events.repository.js';

/**
 * The most characters of a name, or of another value, in the text of an event; the rest is cut off.
 * Users, applications and identity providers choose these values, so a value may be very long.
 */
const LONGEST = 128;

/** The facts of an event from which its text is made. */
type Facts = Pick<
  OwnEvent,
  'type' | 'actorId' | 'subjectId' | 'actorEmail' | 'subjectEmail' | 'clientName' | 'details'
>;

/**
 * Reads a value from the details of an event as text. It returns `otherwise`, or an empty text, if
 * the event lacks the value.
 */
type Read = (name: string, otherwise?: string) => string;

/**
 * The texts of events about the user who reads them, such as a key authentication. The texts for
 * acts of an admin on a member are in {@link ACTS}.
 */
const OWN: Partial<Record<AuditType, (of: Read, application: string) => string>> = {
  login_success: () => 'You logged in with a security key',
  login_failed: (of) =>
    `A login with a security key failed: ${of('reason', 'no reason on record')}`,
  enrollment: () => 'You enrolled your first security key',
  enrollment_refused: (of) => `A security key was refused: ${of('reason', 'no reason on record')}`,
  logout: () => 'You logged out',
  session_ended: () => 'You ended a session',
  enrollment_pass_used: () => 'You enrolled a security key with a re-enrollment pass',
  key_registered: (of) => `You added the key “${of('name', 'Security key')}”`,
  key_removed: (of) => `You removed the key “${of('name', 'Security key')}”`,
  key_renamed: (of) =>
    `You renamed the key “${of('earlier_name', 'Security key')}” to “${of('name')}”`,
  email_changed: () => 'Your e-mail address changed',
  identity_bound: (of) => `Your account at ${of('provider', 'an identity provider')} was bound`,
  identity_bind_refused: () => 'A sign-in at a further identity provider was refused',
  identity_unbound: () => 'Your account at an identity provider was unbound',
  upstream_login: (of) => `You signed in at ${of('provider', 'your identity provider')}`,
  upstream_login_refused: (of) => `A sign-in was refused: ${of('reason', 'no reason on record')}`,
  device_approved: (_, application) => `You approved a device for ${application}`,
  admin_access_refused: (of) => `An act of an admin was refused: ${of('method')} ${of('path')}`,
  ssh_credential: (of) => `An SSH certificate was issued, serial ${of('serial')}`,
  ssh_credential_withheld: (of) => `An SSH certificate was not signed, serial ${of('serial')}`,
  ssh_certificate_revoked: (of) => `You revoked the SSH certificate with serial ${of('serial')}`,
  aws_credential: (of) => `An AWS token was issued${forRole(of('role_arn'))}`,
  github_credential: (of) => `A GitHub token was issued for ${of('owner', 'an installation')}`,
  github_token_revoked: () => 'A GitHub token was revoked',
  github_revocation_failed: () => 'A GitHub token could not be revoked at GitHub',
  token_exchange: (_, application) => `${application} exchanged a token`,
  oauth_token_issued: (_, application) => `You signed in to ${application}`,
  oauth_token_revoked: (_, application) => `A token of ${application} was revoked`,
  oauth_access_ended: (_, application) => `You ended the access of ${application}`,
  notice_dead_lettered: (of, application) =>
    `${application} did not hear that ${UNHEARD[of('notice')] ?? 'your access ended'}`,
  oauth_client_registered: (_, application) => `You registered ${application}`,
  oauth_client_updated: (_, application) => `You changed ${application}`,
  oauth_client_deleted: (_, application) => `You removed ${application}`,
  application_approved: (_, application) => `You approved ${application}`,
  oauth_secret_added: (_, application) => `You added a secret to ${application}`,
  oauth_secret_revoked: (_, application) => `You ended a secret of ${application}`,
  org_updated: () => 'You changed the settings of your organization',
  org_issuer_claimed: (of) => `You claimed the issuer label ${of('label')}`,
  org_issuer_activated: () => 'You switched the issuer of your organization on',
  org_issuer_deactivated: () => 'You switched the issuer of your organization off',
  org_issuer_released: (of) => `You released the issuer label ${of('label')}`,
  org_issuer_key_rotated: () => 'You rotated the signing key of the issuer',
  org_provider_allowed: (of) =>
    `You allowed the identity provider ${of('provider', 'of a member')}`,
  org_provider_withdrawn: (of) =>
    `You withdrew the identity provider ${of('provider', 'of a member')}`,
  org_domain_added: (of) => `You added the domain ${of('domain')}`,
  org_domain_verified: (of) => `You proved the domain ${of('domain')}`,
  org_domain_removed: (of) => `You removed the domain ${of('domain')}`,
  event_receiver_created: (of) => `You made the event receiver “${of('name', 'Receiver')}”`,
  event_receiver_updated: (of) => `You changed the event receiver “${of('name', 'Receiver')}”`,
  event_receiver_secret_rotated: (of) =>
    `You replaced the secret of the event receiver “${of('name', 'Receiver')}”`,
  event_receiver_deleted: (of) => `You removed the event receiver “${of('name', 'Receiver')}”`,
  event_receiver_tested: (of) => `You tested the event receiver “${of('name', 'Receiver')}”`,
  scim_token_created: (of) => `You made the SCIM token “${of('description', 'SCIM token')}”`,
  scim_token_revoked: () => 'You ended a SCIM token',
  secret_confirmed: () => 'You confirmed a secret after the database had lost changes',
  audit_question_saved: (of) => `You saved the question “${of('name', 'Question')}”`,
  audit_question_removed: (of) => `You removed the question “${of('name', 'Question')}”`,
  github_installation_linked: (of) => `You linked the GitHub installation of ${of('owner')}`,
  github_installation_unlinked: (of) => `You unlinked the GitHub installation of ${of('owner')}`,
  scim_operation: () => 'Your organization’s identity provider changed your account',
};

/**
 * The words for a signal (a security event of OpenID Shared Signals) that an application did not
 * accept. For a signal that is not in this table, the text says that access ended.
 */
const UNHEARD: Readonly<Record<string, string>> = {
  'credential-change': 'a security key of yours changed',
  'session-established': 'you signed in to it',
  'account-enabled': 'your account was activated',
};

/**
 * The verbs of the acts of an admin on a member. The member's e-mail address, or `you`, replaces
 * the `…`.
 */
const ACTS: Partial<Record<AuditType, string>> = {
  admin_promote: 'made … an admin',
  admin_demote: 'took the rights of an admin from …',
  admin_deactivate: 'deactivated …',
  admin_activate: 'activated …',
  admin_revoke_credentials: 'revoked all credentials of …',
  admin_remove_user: 'removed …',
  enrollment_pass_created: 'revoked all credentials of …, and gave a re-enrollment pass',
  enrollment_pass_revoked: 'withdrew the re-enrollment pass of …',
  enrollment_pass_waived: 'lifted the demand for a re-enrollment pass from …',
};

/**
 * The verbs for types of events that are usually about the actor's own account. They are used if
 * the actor acted on the account of another user (`…`). `{name}` is the name of a key.
 */
const ACTS_ON_OTHERS: Partial<Record<AuditType, string>> = {
  session_ended: 'ended a session of …',
  key_removed: 'removed the key “{name}” of …',
};

/**
 * Returns the text of an event as a page shows it to the actor or to the subject of the event.
 *
 * @param userId the user who reads the text
 */
export function activityText(event: Facts, userId: string): string {
  const { type, actorId, actorEmail, subjectEmail, clientName, details } = event;
  const of: Read = (name, otherwise = '') => {
    const value = details[name];
    return (typeof value === 'string' ? toSingleLine(value, LONGEST) : null) ?? otherwise;
  };
  const isOnAnother = actorId !== null && event.subjectId !== null && actorId !== event.subjectId;
  if (type === 'admin_promote' && actorId === event.subjectId) return 'You became an admin';
  const act = ACTS[type] ?? (isOnAnother ? ACTS_ON_OTHERS[type] : undefined);
  if (act !== undefined) {
    const other = isByOperator(event) ? 'The operator of the service' : 'An admin';
    const actor = actorId === userId ? 'You' : (actorEmail ?? other);
    const member = subjectEmail ?? of('email', 'a member');
    const object = event.subjectId === userId ? 'you' : member;
    const words = act.replace(/…|\{name\}/g, (place) =>
      place === '…' ? object : of('name', 'Security key'),
    );
    return `${actor} ${words}`;
  }
  const application =
    toSingleLine(clientName ?? '', LONGEST) ?? of('client_id', of('name', 'an application'));
  return OWN[type]?.(of, application) ?? generalText(type);
}

/** Returns true if the operator of the service acted, who is not a user. */
export function isByOperator({ actorId, details }: Pick<Facts, 'actorId' | 'details'>): boolean {
  return actorId === null && details['by'] === 'operator';
}

function forRole(role: string): string {
  return role === '' ? '' : ` for ${role}`;
}

/** Returns the name of a type in words: `org_domain_added` becomes `Org domain added`. */
function generalText(type: string): string {
  const words = type.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
