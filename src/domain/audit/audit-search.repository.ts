import type { AuditFilter, AuditKeys, AuditPeople, AuditRange } from './audit-filter.js';
import {
  hasText,
  IS_ISSUANCE,
  IS_OTHER,
  NOT_OAUTH,
  OF_ADDRESSES,
  OF_ORGANIZATION,
  ON_A_DAY,
} from './search-keys.js';

/** A place: a part of the audit log that one index finds, in most cases in the order of time. */
interface Place {
  /** The conditions that the index serves. */
  readonly where: string;
  /**
   * A list of values, written as a `FROM` item `p (x)`, such as the ids of several users. The place
   * is read once for each value.
   */
  readonly each?: string;
  /**
   * False if the index does not return the events in the order of time. All events of the place are
   * then read and sorted, because they are few.
   */
  readonly isOrdered?: false;
}

/**
 * A field of the filter that is set, such as the client. Its places are the index ranges in which
 * its events are found. Its condition checks events that another field found. A field without a
 * place has only the condition.
 */
interface Criterion {
  readonly places: readonly Place[];
  readonly condition: string;
}

/** The text of an SQL statement, with the values of its parameters `$1`, `$2` and so on. */
export interface SearchStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The bounds of a search. A test lowers them, so that it has to insert fewer events. */
export const SEARCH_BOUNDS = {
  /**
   * The most events that a search reads in one place before it gives up finding events that match
   * the other fields.
   */
  lookBack: 10_000,
  /**
   * The most events of an IP network that are read and sorted. If a network has more events, they
   * are frequent enough that a search through all events in the order of time soon finds some.
   */
  fewOfNetwork: 5_000,
};

const NEWEST_FIRST = 'ORDER BY e.created_at DESC, e.id DESC';

/**
 * Collects the values of a statement as parameters, and returns their placeholders. So the text of
 * the statement depends on which fields of the filter are set, and never on their values.
 */
class Values {
  constructor(readonly all: unknown[]) {}

  readonly bind = (value: unknown) => `$${this.all.push(value)}`;
}

/**
 * Builds the statement of a search. The first field of the filter finds events by its indexes. The
 * other fields are checked for at most `lookBack` of these events in each place. The last of these
 * is returned with `is_end` true, even if it does not match.
 *
 * @param columns the columns of an event `e`
 * @param isRareNetwork true if the network of the filter has at most `fewOfNetwork` events
 */
export function searchStatement(
  columns: string,
  orgId: string,
  filter: AuditFilter,
  { after, limit }: AuditRange,
  isRareNetwork: boolean,
): SearchStatement {
  const values = new Values([orgId, limit]);
  const { places, conditions, range } = planOf(values, filter, after, isRareNetwork);
  const found = places.map((place) => {
    const all = [place.where, ...range].join(' AND ');
    const inner =
      conditions === ''
        ? `SELECT e.*, 0 AS n, true AS matches ${fromPlace(place, all)} ${NEWEST_FIRST} LIMIT $2::int`
        : `SELECT e.*, (${conditions}) IS TRUE AS matches FROM (${scanOf(place, all, SEARCH_BOUNDS.lookBack)}) e
           WHERE (${conditions}) IS TRUE OR e.n = ${SEARCH_BOUNDS.lookBack} ${NEWEST_FIRST} LIMIT $2::int`;
    return forEach(place, inner);
  });
  const text = `SELECT ${columns}, e.matches, e.n = ${SEARCH_BOUNDS.lookBack} AS is_end
    FROM (${found.join(' UNION ALL ')}) e ${NEWEST_FIRST} LIMIT $2::int * ${places.length}`;
  return { text, values: values.all };
}

/**
 * Builds the statement that counts the events of a search by type and by section of its time. It
 * reads at most `most` events, and the first section begins where the reading stopped. The
 * statement computes times as floating-point numbers by `date_part`, because `extract` returns
 * decimal numbers, with which PostgreSQL computes more slowly.
 *
 * @param now the end of the last section if the filter has no end (`to`)
 */
export function timelineStatement(
  orgId: string,
  filter: AuditFilter,
  { sections, most, now }: { readonly sections: number; readonly most: number; readonly now: Date },
  isRareNetwork: boolean,
): SearchStatement {
  const values = new Values([orgId]);
  const { places, conditions, range, lists } = planOf(values, filter, undefined, isRareNetwork);
  const each = Math.max(200, Math.floor(most / Math.max(1, lists)));
  const condition = conditions === '' ? 'true' : `(${conditions}) IS TRUE`;
  const scanned = places.map((place) => {
    const scan = scanOf(place, [place.where, ...range].join(' AND '), each);
    const inner = `SELECT e.*, ${condition} AS matches FROM (${scan}) e WHERE ${condition} OR e.n = ${each}`;
    return forEach(place, inner);
  });
  const from = values.bind(filter.from ?? null);
  const to = values.bind(filter.to !== undefined && filter.to < now ? filter.to : now);
  // An event can be found in several places (index ranges), and by several values of one place. It
  // must be counted once.
  const isOnce = places.length === 1 && places[0]?.each === undefined;
  const text = `
    WITH scanned AS MATERIALIZED (
      SELECT e.id, e.type, e.class, e.created_at, e.matches, e.n = ${each} AS is_end FROM (${scanned.join(' UNION ALL ')}) e
    ), span AS (
      SELECT lo, greatest(hi, lo + interval '1 second') AS hi, is_cut FROM (
        SELECT coalesce(max(created_at) FILTER (WHERE is_end), ${from}::timestamptz, min(created_at)) AS lo,
               ${to}::timestamptz AS hi, coalesce(bool_or(is_end), false) AS is_cut
        FROM scanned) s
    )
    SELECT s.type, s.class, span.lo, span.hi, span.is_cut AS "isCut", count(${isOnce ? '*' : 'DISTINCT s.id'})::int AS events,
           least(width_bucket(date_part('epoch', s.created_at), date_part('epoch', span.lo),
                              date_part('epoch', span.hi), ${sections}), ${sections}) AS section
    FROM scanned s CROSS JOIN span
    WHERE s.matches AND s.created_at >= span.lo
    GROUP BY s.type, s.class, span.lo, span.hi, span.is_cut, section`;
  return { text, values: values.all };
}

/**
 * Plans a search: returns the places (index ranges) of its first field, the conditions of the other
 * fields, and the range of time.
 */
function planOf(
  values: Values,
  filter: AuditFilter,
  after: AuditRange['after'],
  isRareNetwork: boolean,
) {
  const { bind } = values;
  const criteria = criteriaOf(values, filter, isRareNetwork);
  const first = criteria[0]?.places.length === 0 ? undefined : criteria[0];
  const others = first === undefined ? criteria : criteria.slice(1);
  const places = first?.places ?? [{ where: 'e.org_id = $1' }];
  const range: string[] = [];
  if (after) {
    range.push(`(e.created_at, e.id) < (${bind(after.at)}::timestamptz, ${bind(after.id)}::uuid)`);
  }
  if (filter.from) range.push(`e.created_at >= ${bind(filter.from)}::timestamptz`);
  if (filter.to) range.push(`e.created_at < ${bind(filter.to)}::timestamptz`);
  const conditions = others.map(({ condition }) => `(${condition})`).join(' AND ');
  const lists = first === undefined ? 1 : listsOf(filter, first);
  return { places, conditions, range, lists };
}

/**
 * Counts the index ranges that a search reads for the first field of its filter. There is one for
 * each place, or one for each value in the list of a place.
 */
function listsOf({ types, people, keys }: AuditFilter, { places }: Criterion): number {
  const longest = Math.max(
    1,
    types?.length ?? 0,
    people?.[0]?.ids.length ?? 0,
    keys?.aaguids.length ?? 0,
  );
  return places.reduce((sum, { each }) => sum + (each === undefined ? 1 : longest), 0);
}

/**
 * Lists the fields of the filter that are set. The field that probably matches the fewest events
 * comes first, because the search finds the events by the indexes of the first field.
 */
function criteriaOf(values: Values, filter: AuditFilter, isRareNetwork: boolean): Criterion[] {
  const { requestId, people = [], keys, network, client, types, target } = filter;
  const byNetwork = network && networkCriterion(values, network, isRareNetwork);
  return [
    ...(requestId === undefined ? [] : [requestCriterion(values, requestId)]),
    ...people.map((each) => peopleCriterion(values, each)),
    ...(keys ? [keysCriterion(values, keys)] : []),
    ...(byNetwork?.isFirst === true ? [byNetwork] : []),
    ...(client === undefined ? [] : [clientCriterion(values, client)]),
    ...(types ? [typesCriterion(values, types)] : []),
    ...(byNetwork?.isFirst === false ? [byNetwork] : []),
    ...(target === undefined ? [] : [targetCriterion(values, target)]),
  ];
}

function requestCriterion({ bind }: Values, requestId: string): Criterion {
  const text = `${bind(requestId)}::text`;
  return {
    places: [{ where: `${hasText('request_id', text)} AND ${ON_A_DAY}` }],
    condition: `e.request_id = ${text}`,
  };
}

function peopleCriterion({ bind }: Values, { ids, addresses }: AuditPeople): Criterion {
  const users = `${bind(ids)}::uuid[]`;
  const eachUser = `unnest(${users}) AS p (x)`;
  const ofUser: Place[] = [
    { each: eachUser, where: `e.subject_id = p.x AND ${IS_ISSUANCE} AND ${OF_ORGANIZATION}` },
    { each: eachUser, where: `e.subject_id = p.x AND ${IS_OTHER} AND ${OF_ORGANIZATION}` },
    {
      each: eachUser,
      where: `e.actor_id = p.x AND e.actor_id IS DISTINCT FROM e.subject_id AND ${OF_ORGANIZATION}`,
    },
  ];
  const isOfUser = `e.subject_id = ANY (${users}) OR e.actor_id = ANY (${users})`;
  if (addresses.length === 0) return { places: ofUser, condition: isOfUser };
  const texts = `${bind(addresses)}::text[]`;
  const each = `unnest(${texts}) AS p (x)`;
  const ofAddress = [
    hasText('subject_email', 'p.x'),
    'e.org_id = $1 AND e.actor_email = p.x AND e.actor_email IS DISTINCT FROM e.subject_email',
    `${NOT_OAUTH} AND e.org_id = $1 AND e.details ? 'email' AND e.details ->> 'email' = p.x`,
  ].map((where): Place => ({ each, where }));
  const condition = `${isOfUser} OR e.subject_email = ANY (${texts}) OR e.actor_email = ANY (${texts})
    OR e.details ->> 'email' = ANY (${texts})`;
  return { places: [...ofUser, ...ofAddress], condition };
}

function keysCriterion({ bind }: Values, { id, aaguids }: AuditKeys): Criterion {
  const models = `${bind(aaguids)}::text[]`;
  const ofModels = {
    each: `unnest(${models}) AS p (x)`,
    where: `e.org_id = $1 AND e.details ? 'aaguid' AND e.details ->> 'aaguid' = p.x`,
  };
  const isOfModel = `e.details ->> 'aaguid' = ANY (${models})`;
  if (id === undefined) return { places: [ofModels], condition: isOfModel };
  const isKey = `e.details ? 'key_id' AND e.type <> 'ssh_credential' AND e.details ->> 'key_id' = ${bind(id)}`;
  const ofKey = { where: `${NOT_OAUTH} AND e.org_id = $1 AND ${isKey}` };
  return { places: [ofKey, ofModels], condition: `(${isKey}) OR ${isOfModel}` };
}

function networkCriterion(
  { bind }: Values,
  { text, isOneAddress, bits }: NonNullable<AuditFilter['network']>,
  isRare: boolean,
): Criterion & { readonly isFirst: boolean } {
  const network = `${bind(text)}::inet`;
  const condition = `e.ip <<= ${network}`;
  const isFirst = isOneAddress || isRare;
  if (isOneAddress) {
    const isAddress = `e.ip = ${network}`;
    const place = { where: `${OF_ADDRESSES} AND ${isAddress}` };
    return { places: [place], condition: isAddress, isFirst };
  }
  const place: Place = { where: ofNetwork(network, bits), isOrdered: false };
  return { places: isRare ? [place] : [], condition, isFirst };
}

/**
 * Returns the SQL condition that the IP address of an event is in a network. It is written as a
 * range of IP addresses, because the index on IP addresses serves a range.
 */
function ofNetwork(network: string, bits: number): string {
  return `${OF_ADDRESSES} AND e.ip >= set_masklen(network(${network})::inet, ${bits})
    AND e.ip <= set_masklen(broadcast(${network}), ${bits})`;
}

/**
 * Builds the statement that counts the events of a network, up to one more than
 * `fewOfNetwork`.
 */
export function networkStatement(
  orgId: string,
  { text, bits }: NonNullable<AuditFilter['network']>,
): SearchStatement {
  const place = ofNetwork('$2::inet', bits);
  return {
    text: `SELECT count(*)::int AS n FROM (SELECT FROM audit_events e WHERE ${place} LIMIT ${SEARCH_BOUNDS.fewOfNetwork + 1}) e`,
    values: [orgId, text],
  };
}

function clientCriterion({ bind }: Values, client: string): Criterion {
  const text = `${bind(client)}::text`;
  const conditions = [
    `e.details ? 'client_id' AND e.details ->> 'client_id' = ${text}`,
    `e.details ? 'application_id' AND e.details ->> 'application_id' = ${text}`,
    `e.client_name IS NOT NULL AND lower(e.client_name) = lower(${text})`,
  ];
  return {
    places: conditions.map((condition) => ({ where: `e.org_id = $1 AND ${condition}` })),
    condition: conditions.map((condition) => `(${condition})`).join(' OR '),
  };
}

/**
 * Makes the condition that an event is about a target. It compares the name of the target at the
 * time of the event, and the client, role or owner for which a credential was issued. It also
 * compares SSH principals and groups of hosts. A role is also found by its present name.
 */
function targetCriterion({ bind }: Values, target: string): Criterion {
  const text = `${bind(target)}::text`;
  const roles = `(SELECT t.role_arn FROM access_targets t
    WHERE t.org_id = $1 AND t.kind = 'aws_role' AND t.name = lower(${text}))`;
  const principal = `'@' || ${text} || ':' || $1::text`;
  const conditions = [
    `lower(e.details #>> '{target,name}') = lower(${text})`,
    `e.details #>> '{target,id}' = ${text}`,
    `lower(e.client_name) = lower(${text})`,
    `${text} IN (e.details ->> 'client_id', e.details ->> 'application_id', e.details ->> 'role_arn')`,
    `lower(e.details ->> 'owner') = lower(${text})`,
    `(e.details ->> 'role_arn' IN ${roles} OR e.details #>> '{target,kind}' = 'aws_role' AND e.details #>> '{target,name}' IN ${roles})`,
    `e.type = 'access_refused' AND e.details -> 'host_groups' ? lower(${text})`,
    // Events that an earlier version of the service wrote name only the host, and not its groups.
    // So the host is compared with the present groups.
    `CASE WHEN e.type = 'access_refused' AND e.details #>> '{target,kind}' = 'host_group' AND NOT e.details ? 'host_groups'
       THEN EXISTS (SELECT FROM access_targets t WHERE t.org_id = $1 AND t.kind = 'host_group'
         AND t.name = lower(${text}) AND matches_host(t.hosts, e.details #>> '{target,name}')) END`,
    `CASE WHEN jsonb_typeof(e.details -> 'principals') = 'array' THEN EXISTS (
       SELECT FROM jsonb_array_elements_text(e.details -> 'principals') p
       WHERE right(p, length(${principal})) = ${principal}) END`,
  ];
  return { places: [], condition: conditions.map((each) => `(${each})`).join(' OR ') };
}

function typesCriterion({ bind }: Values, types: readonly string[]): Criterion {
  const all = `${bind(types)}::text[]`;
  const place = { each: `unnest(${all}) AS p (x)`, where: hasText('type', 'p.x') };
  return { places: [place], condition: `e.type = ANY (${all})` };
}

/**
 * Returns the SQL that reads the newest events of a place (an index range) and numbers them from 1.
 */
function scanOf(place: Place, where: string, most: number): string {
  const number = 'row_number() OVER (ORDER BY e.created_at DESC, e.id DESC) AS n';
  return `SELECT e.*, ${number} ${fromPlace(place, where)} ${NEWEST_FIRST} LIMIT ${most}`;
}

/**
 * Returns the `FROM` clause of a place. `OFFSET 0` stops the planner from merging the queries.
 * Otherwise the planner could choose an index that has the order of time but does not serve the
 * condition.
 */
function fromPlace({ isOrdered }: Place, where: string): string {
  return isOrdered === false
    ? `FROM (SELECT e.* FROM audit_events e WHERE ${where} OFFSET 0) e`
    : `FROM audit_events e WHERE ${where}`;
}

function forEach({ each }: Place, inner: string): string {
  return each === undefined
    ? `(${inner})`
    : `(SELECT e.* FROM ${each} CROSS JOIN LATERAL (${inner}) e)`;
}
