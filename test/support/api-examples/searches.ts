import type { Exchanges } from './exchanges.js';

type Also = Exchanges['also'];

/** A sample for each filter of the operations that list members or keys. */
const OF_MEMBERS = {
  model: 'YubiKey 5 Series with NFC',
  fips: false,
  keys: 'one',
  last_use: 'never',
  role: 'member',
  status: 'active',
  tie: 'twin',
};

/**
 * Records the remaining parameters of an operation that lists members or keys. Also records its
 * responses in CSV and NDJSON.
 *
 * @param more parameters that not every such operation has
 */
export async function searchMembers(also: Also, name: string, more: object = {}): Promise<void> {
  const first = await also(name, { parameters: { ...more, limit: 1 } });
  await also(name, { parameters: { ...more, after: first.json.next as string, limit: 1 } });
  await also(name, { parameters: OF_MEMBERS });
  for (const format of ['csv', 'ndjson']) {
    await also(name, { parameters: { q: 'admin', format } });
  }
}

/**
 * Records the remaining parameters of an operation that lists audit events. Also records its
 * responses in CSV and NDJSON.
 */
export async function searchEvents(
  also: Also,
  name: string,
  user: { readonly id: string; readonly email: string },
): Promise<void> {
  const own = { type: 'enrollment', user: user.id, limit: 1 };
  const page = await also(name, { parameters: own });
  const [event] = page.json.events as [{ request_id: string; ip: string; created_at: string }];
  const { request_id: request, ip, created_at: from } = event;
  const to = new Date(Date.parse(from) + 60_000).toISOString();
  await also(name, { parameters: { user: user.id, email: user.email, request, from, to } });
  await also(name, { parameters: { person: user.email, ip } });
  await also(name, { parameters: { client: 'Wiki' } });
  await also(name, { parameters: { target: 'deploy' } });
  await also(name, { parameters: { key: 'YubiKey 5' } });
  const feed = await also(name, { parameters: { order: 'asc', limit: 1 } });
  await also(name, { parameters: { order: 'asc', after: feed.json.next as string, limit: 1 } });
  for (const format of ['csv', 'ndjson']) {
    await also(name, { parameters: { ...own, format } });
  }
}
