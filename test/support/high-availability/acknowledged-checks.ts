import type { QueriedServer } from '../failover/failover-world.js';
import { decided } from '../failover/person.js';
import type { FailoverService } from '../failover/failover-service.js';
import { postForm } from '../oauth-flow.js';
import type { Acknowledged, MixedLoad } from './mixed-load.js';

/** The numbers of contradictions between the responses of the service and the database. */
export interface Broken {
  /**
   * Certificates, tokens and users that the service created and that are gone. Also users of whom
   * an audit event is missing.
   */
  readonly lost: number;
  /**
   * Users that exist although they were deleted, and tokens that are active although they were
   * revoked.
   */
  readonly undone: number;
  /** Serials that two certificates have, and SCIM requests that have two audit events. */
  readonly twice: number;
}

/** The largest number of tokens in each state (made or ended) that one check introspects. */
const MOST_TOKENS = 60;

/** The objects that {@link brokenSince} compares or needs. */
export interface Checked {
  readonly load: MixedLoad;
  readonly service: FailoverService;
  /** The database server that accepts writes. */
  readonly leader: QueriedServer;
  /** The credentials of the application that requested the tokens. */
  readonly application: { readonly id: string; readonly secret: string };
}

/**
 * Compares the responses of the service since a time of `performance.now()` with the database. It
 * reads certificates and users by SQL, and tokens by introspection.
 */
export async function brokenSince(checked: Checked, since: number): Promise<Broken> {
  const certificates = await lostCertificates(checked, since);
  const users = await brokenUsers(checked, since);
  const tokens = await brokenTokens(checked, since);
  return {
    lost: certificates + users.lost + tokens.lost,
    undone: users.undone + tokens.undone,
    twice: checked.load.ledger.equalSerials.length + users.twice,
  };
}

async function lostCertificates({ load, leader }: Checked, since: number): Promise<number> {
  const serials = load.ledger.since(since).map(({ serial }) => serial);
  const rows = await leader.query<{ serial: string }>(
    'SELECT serial::text FROM ssh_certificates WHERE serial = ANY ($1::bigint[])',
    [serials],
  );
  const kept = new Set(rows.map(({ serial }) => serial));
  return serials.filter((serial) => !kept.has(serial)).length;
}

async function brokenUsers({ load, leader }: Checked, since: number) {
  const made = idsOf(load.users, since, 'made');
  const ended = idsOf(load.users, since, 'ended');
  const rows = await leader.query<{ id: string }>(
    'SELECT id FROM users WHERE id = ANY ($1::uuid[])',
    [[...made, ...ended]],
  );
  const kept = new Set(rows.map(({ id }) => id));
  const events = await leader.query<{ id: string; count: number }>(
    `SELECT details ->> 'resource_id' AS id, count(*)::int AS count FROM audit_events
     WHERE type = 'scim_operation' AND details ->> 'resource_id' = ANY ($1)
     GROUP BY details ->> 'resource_id', details ->> 'operation'`,
    [[...made, ...ended]],
  );
  const recorded = Map.groupBy(events, ({ id }) => id);
  const lacks = (id: string, operations: number) => (recorded.get(id)?.length ?? 0) < operations;
  return {
    lost:
      made.filter((id) => !kept.has(id) || lacks(id, 1)).length +
      ended.filter((id) => lacks(id, 2)).length,
    undone: ended.filter((id) => kept.has(id)).length,
    twice: events.filter(({ count }) => count > 1).length,
  };
}

async function brokenTokens(checked: Checked, since: number) {
  const { tokens } = checked.load;
  const active = async (state: Acknowledged['state']) => {
    const some = idsOf(tokens, since, state).slice(-MOST_TOKENS);
    let count = 0;
    for (const token of some) if (await isActive(checked, token)) count += 1;
    return { active: count, inactive: some.length - count };
  };
  return { lost: (await active('made')).inactive, undone: (await active('ended')).active };
}

async function isActive({ service, application }: Checked, token: string): Promise<boolean> {
  const pair = Buffer.from(`${application.id}:${application.secret}`).toString('base64');
  const headers = { authorization: `Basic ${pair}` };
  const answer = await decided(() => postForm(service, '/oauth/introspect', { token }, headers));
  return (answer.json as { active: boolean }).active;
}

/**
 * Returns the keys of the map whose value has a state, and was acknowledged since a time of
 * `performance.now()`.
 */
function idsOf(
  all: ReadonlyMap<string, Acknowledged>,
  since: number,
  state: Acknowledged['state'],
): string[] {
  return [...all].filter(([, one]) => one.at >= since && one.state === state).map(([id]) => id);
}
