/**
 * The types of events of which the service tells people, with who hears of each. `subject` is the
 * person whose account changed. `admins` are all admins of the organization, the one who acted
 * included, because a stolen session may have acted in the name of that admin.
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

/** A type of events of which the service tells people. */
export type NoticedType = keyof typeof NOTICED;

/** The changes of an event receiver of which the service tells people: not of a new name. */
const TOLD_CHANGES: ReadonlySet<unknown> = new Set(['url', 'types', 'header', 'status']);

/** Returns true for a type of events of which the service tells people. */
export function isNoticed(type: string): type is NoticedType {
  return type in NOTICED;
}

/** Returns true if the service tells people of an event of a noticed type with some details. */
export function isTold(
  type: NoticedType,
  details: Readonly<Record<string, unknown>> = {},
): boolean {
  if (type !== 'event_receiver_updated') return true;
  const { changed } = details;
  return Array.isArray(changed) && changed.some((name) => TOLD_CHANGES.has(name));
}
