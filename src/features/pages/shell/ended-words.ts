import type { RevokedCounts } from '#domain/access-revocation/revocable.js';

/** The words of a page for each count of what ends. `static/console/form.js` has the same words for what ended. */
const WORDS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  keys: ['security key', 'security keys'],
  sessions: ['session', 'sessions'],
  certificates: ['SSH certificate', 'SSH certificates'],
  ssh_keys: ['proven SSH key', 'proven SSH keys'],
  grants: ['sign-in at an application', 'sign-ins at applications'],
  tokens: ['token', 'tokens'],
  github_tokens: ['GitHub token', 'GitHub tokens'],
  applications: ['registered application', 'registered applications'],
  enrollment_passes: ['re-enrollment pass', 're-enrollment passes'],
};

const LIST = new Intl.ListFormat('en-GB');

/** Says what ends with an act: `2 sessions and 1 SSH certificate`. Empty where nothing ends. */
export function endedWords(counts: RevokedCounts): string {
  const items = Object.entries(WORDS).flatMap(([kind, [one, many]]) => {
    const count = counts[kind] ?? 0;
    return count > 0 ? [`${count} ${count === 1 ? one : many}`] : [];
  });
  return LIST.format(items);
}
