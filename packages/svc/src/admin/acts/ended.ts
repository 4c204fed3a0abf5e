/**
 * The numbers of the things that an act ends, such as sessions, by the name of the kind in the API.
 */
export type Ended = Readonly<Record<string, number | undefined>>;

/**
 * The words for kinds with a name in the API that an admin would not understand, each in the
 * singular.
 */
const WORDS: Readonly<Record<string, string>> = {
  api_tokens: 'API token',
  certificates: 'SSH certificate',
  event_receivers: 'paused event receiver',
  enrollment_passes: 're-enrollment pass',
  github_tokens: 'GitHub token',
  grants: 'application sign-in',
  keys: 'security key',
  ssh_keys: 'proven SSH key',
  users: 'member',
};

/** Says in a line what an act ends: `This ends: 2 sessions, 1 SSH certificate.` */
export function endedLine(ended: Ended, verb: 'This ends' | 'Ended'): string {
  const items = Object.entries(ended).flatMap(([kind, count = 0]) =>
    count > 0 ? [`${count} ${wordOf(kind, count)}`] : [],
  );
  return `${verb}: ${items.length === 0 ? 'nothing' : items.join(', ')}.`;
}

function wordOf(kind: string, count: number): string {
  const one = WORDS[kind] ?? kind.replace(/s$/, '').replaceAll('_', ' ');
  if (count === 1) return one;
  return one.endsWith('s') ? `${one}es` : `${one}s`;
}
