import type { EndPreview } from '#domain/access-revocation/end-preview.repository.js';

/** The words of a page for each count of what an act ends. */
const WORDS: Readonly<Record<string, readonly [one: string, many: string]>> = {
  sessions: ['session', 'sessions'],
  certificates: ['SSH certificate', 'SSH certificates'],
  github_tokens: ['GitHub token', 'GitHub tokens'],
  tokens: ['token', 'tokens'],
  secrets: ['secret', 'secrets'],
};

const LIST = new Intl.ListFormat('en-GB');
const NUMBER = new Intl.NumberFormat('en-GB');

/**
 * Says what an act ends: `2 members lose access: 3 sessions and 1 SSH certificate.` For very many members it counts the members
 * alone.
 */
export function endsText({ users, counts }: EndPreview): string {
  if (users === 0) return 'No member loses access.';
  const members = `${NUMBER.format(users)} ${users === 1 ? 'member loses' : 'members lose'} access`;
  if (counts === null) {
    return `${members}: all of their sessions, SSH certificates, GitHub tokens and tokens of applications.`;
  }
  const items = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(
      ([kind, count]) =>
        `${NUMBER.format(count)} ${(WORDS[kind] ?? [kind, kind])[count === 1 ? 0 : 1]}`,
    );
  return items.length === 0
    ? `${members}, and nothing is open now.`
    : `${members}: ${LIST.format(items)}.`;
}
