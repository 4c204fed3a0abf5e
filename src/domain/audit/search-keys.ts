import { SqlFragment } from '#platform/database/statements/sql.js';

/**
 * The SQL that is 1 if an event `e` is the issuance of a credential to its subject, and 0
 * otherwise. A token exchange has two events, of which only `token_exchange` counts.
 *
 * The expression is a column of the index `audit_log_of_subject`, so its text must equal that in
 * the index; otherwise PostgreSQL does not use the index. The index has two parts for each subject,
 * and each part is in the order of time.
 */
const ISSUED = `(CASE WHEN e.type IN ('ssh_credential', 'aws_credential', 'github_credential', 'token_exchange', 'oauth_token_issued')
  AND (e.type <> 'oauth_token_issued' OR e.details ->> 'grant_type' IS DISTINCT FROM 'token_exchange') THEN 1 ELSE 0 END)`;

/**
 * The conditions of the two parts of the index `audit_log_of_subject`: the issued credentials, and
 * the other events. Issued credentials have the class `oauth`, so that PostgreSQL skips the
 * partitions of the other classes.
 */
export const IS_ISSUANCE = `e.class = 'oauth' AND ${ISSUED} = 1`;
export const IS_OTHER = `${ISSUED} = 0`;

/**
 * The condition that an event has a class for which an index of e-mail addresses and security keys
 * in the details exists. The partitions of the class `oauth` have no such index.
 */
export const NOT_OAUTH = `e.class IN ('auth', 'admin')`;

/**
 * The conditions {@link IS_ISSUANCE} and {@link IS_OTHER} for statements that are written as
 * templates.
 */
export const ISSUANCE = new SqlFragment([IS_ISSUANCE], []);
export const OTHER = new SqlFragment([IS_OTHER], []);

/**
 * The condition that an event belongs to the organization `$1`. Its form is one that no index
 * serves, because the planner could otherwise choose to scan the whole log of the organization.
 */
export const OF_ORGANIZATION = 'e.org_id IS NOT DISTINCT FROM $1';

/**
 * Returns the SQL of the hash (8 bytes) of a text together with the id of an organization, as the
 * indexes store it.
 */
function key(text: string, orgId: string): string {
  return `hashtextextended(${text}, uuid_hash_extended(${orgId}, 0))`;
}

/**
 * Returns the condition that a text column of an event of the organization `$1` has a value. The
 * indexes contain only a hash of the organization and the value. So the condition compares the
 * value itself, too.
 */
export function hasText(column: 'type' | 'subject_email' | 'request_id', value: string): string {
  return `${key(`e.${column}`, 'e.org_id')} = ${key(value, '$1::uuid')} AND e.${column} = ${value} AND ${OF_ORGANIZATION}`;
}

/**
 * The condition that an event belongs to the organization `$1`, in the form that the index of IP
 * addresses serves.
 */
export const OF_ADDRESSES = `uuid_hash_extended(e.org_id, 0) = uuid_hash_extended($1::uuid, 0) AND ${OF_ORGANIZATION}`;

/**
 * The condition that the day of an event is not before the first event of the organization `$1`. It
 * is always true. It is needed because the index of request ids begins with the day. PostgreSQL
 * before version 18 cannot skip from day to day by itself.
 */
export const ON_A_DAY = `(e.created_at AT TIME ZONE 'UTC')::date = ANY (ARRAY(
  SELECT d::date FROM generate_series(
    (SELECT date_trunc('day', min(f.created_at) AT TIME ZONE 'UTC') FROM audit_events f WHERE f.org_id = $1),
    clock_timestamp() AT TIME ZONE 'UTC' + interval '1 day', '1 day') d))`;
