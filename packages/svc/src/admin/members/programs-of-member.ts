import { printable } from '../../terminal/table.js';
import type { KnownMember } from './member.js';

/**
 * The rights that a member loses: the role of an admin alone (`role`), or all access (`access`).
 */
export type EndOfAdmin = 'role' | 'access';

/** The words for what happens to the API tokens of a member who loses the role, or all access. */
const TOKENS: Readonly<Record<EndOfAdmin, string>> = {
  role: 'API tokens that rotate nothing more, and end after 7 days; those that only rotate, at once',
  access: 'API tokens that end at once',
};

/**
 * Returns the lines that name the API tokens that a member made, and the event receivers whose URL
 * the member set. Both work by the rights of the member.
 */
export function programsOf(
  { api_tokens: tokens = [], event_receivers: receivers = [] }: KnownMember,
  end: EndOfAdmin,
): string[] {
  return [
    ...named(
      TOKENS[end],
      tokens,
      'Another admin makes a successor: svc admin api-tokens rotate ID',
    ),
    ...named(
      'Event receivers that are paused at once',
      receivers,
      'Another admin lets them go on, on the page of the event receivers.',
    ),
  ];
}

function named(
  what: string,
  things: readonly { readonly name: string; readonly id: string }[],
  remedy: string,
): string[] {
  if (things.length === 0) return [];
  return [`${what}:`, ...things.map(({ id, name }) => `  ${printable(name)} (${id})`), remedy];
}
