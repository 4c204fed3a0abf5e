/**
 * The types of audit events of which the service notifies people, each with the people who are
 * notified. `subject` is the person with the changed account. `admins` are all admins of the
 * organization. The admin who acted is included, because a thief may have acted in a stolen session
 * of that admin.
 */
export const NOTICED = {
  key_registered: ['subject'],
  key_removed: ['subject'],
  enrollment_pass_created: ['subject'],
  admin_promote: ['subject', 'admins'],
  api_token_created: ['admins'],
  api_token_rotated: ['admins'],
  scim_token_created: ['admins'],
  event_receiver_created: ['admins'],
  event_receiver_updated: ['admins'],
  event_receiver_deleted: ['admins'],
  event_receiver_secret_rotated: ['admins'],
} as const satisfies Record<string, readonly ('subject' | 'admins')[]>;

/** A type of events of which the service notifies people. */
export type NoticedType = keyof typeof NOTICED;

/**
 * The properties of an event receiver, such as its URL. People are notified if one of these
 * changes, and not if only the name of the receiver changes.
 */
const TOLD_CHANGES: ReadonlySet<unknown> = new Set(['url', 'types', 'header', 'status']);

/** Returns true for a type of events of which the service notifies people. */
export function isNoticed(type: string): type is NoticedType {
  return type in NOTICED;
}

/**
 * Returns true if the service notifies people of one event. The event has a type of {@link
 * NOTICED}. For the change of an event receiver, the details decide.
 */
export function isTold(
  type: NoticedType,
  details: Readonly<Record<string, unknown>> = {},
): boolean {
  if (type !== 'event_receiver_updated') return true;
  const { changed } = details;
  return Array.isArray(changed) && changed.some((name) => TOLD_CHANGES.has(name));
}
