import type { OwnAccount } from '#domain/account/own-account.service.js';
import type { AccountNotice } from '#domain/audit/notices/account-notices.repository.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import type { TextPart } from './event-days.js';
import { moment, type Moment } from './moment.js';

/** A notice of a change to an account or organization, as a page shows it. */
export interface ShownNotice {
  readonly id: string;
  readonly parts: readonly TextPart[];
  readonly at: Moment;
  /** The page on which the user can check or undo what happened. */
  readonly href: string;
}

/**
 * The text of each type of notice, and the page to which the notice leads. `{actor}`, `{subject}`
 * and `{name}` stand for names.
 */
const TEXTS: Readonly<Record<string, readonly [text: string, href: string]>> = {
  key_registered: ['The security key “{name}” was added to your account', '/account/keys'],
  key_removed: ['{actor} removed the security key “{name}” from your account', '/account/keys'],
  enrollment_pass_created: [
    '{actor} ended your keys, and gave you a pass to enroll another one',
    '/account/keys',
  ],
  admin_promote: ['{actor} made {subject} an admin', '/admin/members'],
  api_token_created: ['{actor} made the API token “{name}”', '/admin/api-tokens'],
  api_token_rotated: ['{actor} made the successor of the API token “{name}”', '/admin/api-tokens'],
  scim_token_created: ['{actor} made the SCIM token “{name}”', '/admin/scim-tokens'],
  event_receiver_created: [
    '{actor} made the event receiver “{name}”, which gets the audit log',
    '/admin/event-receivers',
  ],
  event_receiver_updated: ['{actor} changed the event receiver “{name}”', '/admin/event-receivers'],
  event_receiver_deleted: ['{actor} removed the event receiver “{name}”', '/admin/event-receivers'],
  event_receiver_secret_rotated: [
    '{actor} replaced the secret of the event receiver “{name}”',
    '/admin/event-receivers',
  ],
};

/**
 * The text of a notice about a paused event receiver. The service pauses a receiver if the member
 * who set its URL ({subject}) is no admin any more.
 */
const PAUSED = [
  'The event receiver “{name}” is paused, because {subject} lost the access of an admin',
  '/admin/event-receivers',
] as const;

/**
 * The text of a notice of an unknown type. During an upgrade, a newer version of the service may
 * already have stored such a notice.
 */
const OTHER = ['Your account or your organization changed', '/account/activity'] as const;

/**
 * Returns the notices that the user of a session has not read. The session says if there is any, so
 * that no query is sent if there is none.
 */
export async function noticesOf(
  account: Pick<OwnAccount, 'notices'>,
  { user, unreadNotice }: VerifiedSession,
): Promise<ShownNotice[]> {
  if (!unreadNotice) return [];
  return (await account.notices(user.id)).map((notice) => shownNotice(notice, user.id));
}

/**
 * Returns a notice as a page shows it, with the names of people and things in its text.
 *
 * @param userId the user who reads the notice, whom the text calls `you`
 */
export function shownNotice(notice: AccountNotice, userId: string): ShownNotice {
  const { id, type, actorId, subjectId, createdAt } = notice;
  const isPaused = type === 'event_receiver_updated' && subjectId !== null;
  const [text, href] = isPaused ? PAUSED : (TEXTS[type] ?? OTHER);
  const someone = actorId === null ? 'The operator of the service' : 'A person who left';
  const names: Readonly<Record<string, TextPart>> = {
    actor: actorId === userId ? words('You') : nameOr(notice.actor, someone),
    subject: subjectId === userId ? words('you') : nameOr(notice.subject, 'a member'),
    name: nameOr(notice.name, '…'),
  };
  const parts = text
    .split(/\{(\w+)\}/)
    .map((part, n) => (n % 2 === 1 ? (names[part] ?? words(part)) : words(part)));
  return { id, href, at: moment(createdAt), parts: parts.filter((part) => part.text !== '') };
}

function nameOr(name: string | null, otherwise: string): TextPart {
  return name === null ? words(otherwise) : { text: name, isName: true };
}

function words(text: string): TextPart {
  return { text, isName: false };
}
