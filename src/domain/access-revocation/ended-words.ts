import type { RevokedCounts } from './revocable.js';

/**
 * The singular and plural of each kind of item that a revocation ends, by its name in the API.
 * Pages, their scripts and the command of the operator read this table.
 */
export const ENDED_WORDS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  users: ['member', 'members'],
  keys: ['security key', 'security keys'],
  sessions: ['session', 'sessions'],
  certificates: ['SSH certificate', 'SSH certificates'],
  ssh_keys: ['proven SSH key', 'proven SSH keys'],
  grants: ['sign-in at an application', 'sign-ins at applications'],
  tokens: ['token', 'tokens'],
  github_tokens: ['GitHub token', 'GitHub tokens'],
  secrets: ['secret', 'secrets'],
  applications: ['registered application', 'registered applications'],
  api_tokens: ['API token', 'API tokens'],
  api_tokens_ending: ['API token that ends in 7 days', 'API tokens that end in 7 days'],
  event_receivers: ['event receiver (paused)', 'event receivers (paused)'],
  enrollment_passes: ['re-enrollment pass', 're-enrollment passes'],
};

const LIST = new Intl.ListFormat('en-GB');

/**
 * Lists in words what a revocation ends: `2 sessions and 1 SSH certificate`. The text is empty if
 * nothing ends.
 */
export function endedWords(counts: RevokedCounts): string {
  return LIST.format(endedItems(counts));
}

/**
 * Returns the words for each kind of item that a revocation ends, in the order of {@link
 * ENDED_WORDS}: `2 sessions`, `1 SSH certificate`.
 */
export function endedItems(counts: RevokedCounts): string[] {
  return Object.entries(ENDED_WORDS).flatMap(([kind, [one, many]]) => {
    const count = counts[kind] ?? 0;
    return count > 0 ? [`${count} ${count === 1 ? one : many}`] : [];
  });
}
