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
  event_receiver_created: ['admins'],
} as const satisfies Record<string, readonly ('subject' | 'admins')[]>;

/** A type of events of which the service tells people. */
export type NoticedType = keyof typeof NOTICED;

/** Returns true for a type of events of which the service tells people. */
export function isNoticed(type: string): type is NoticedType {
  return type in NOTICED;
}
