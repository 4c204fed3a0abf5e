import type { EndPreview } from '#domain/admin/organization/end-preview.repository.js';
import { endedWords } from '#domain/access-revocation/ended-words.js';

const NUMBER = new Intl.NumberFormat('en-GB');

/**
 * Returns in words what a change ends: `2 members lose access: 3 sessions and 1 SSH certificate.`
 * If `counts` is null, because too many members are concerned, the text names no numbers of items.
 */
export function endsText({ users, counts }: EndPreview): string {
  if (users === 0) return 'No member loses access.';
  const members = `${NUMBER.format(users)} ${users === 1 ? 'member loses' : 'members lose'} access`;
  if (counts === null) {
    return `${members}: all of their sessions, SSH certificates, GitHub tokens and tokens of applications.`;
  }
  const items = endedWords(counts);
  return items === '' ? `${members}, and nothing is open now.` : `${members}: ${items}.`;
}
