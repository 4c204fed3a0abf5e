import type { AuditRow } from '#domain/audit/audit-filter.js';

/** The version of the Open Cybersecurity Schema Framework. */
const VERSION = '1.8.0';

const PRODUCT = { name: 'svc-server', vendor_name: 'svc-server' };
const CATEGORY = { identity: 3, application: 6 } as const;
const CLASS = { authentication: 3002, apiActivity: 6003 } as const;
const INFORMATIONAL = 1;
const SUCCESS = 1;
const FAILURE = 2;
const OTHER = 99;

/**
 * The event types that are activities of the class Authentication, with the number of the activity:
 * 1 is Logon, 2 is Logoff.
 */
const AUTHENTICATIONS: Readonly<Record<string, number>> = {
  login_success: 1,
  login_failed: 1,
  upstream_login: 1,
  upstream_login_refused: 1,
  logout: 2,
  session_ended: 2,
};

/**
 * The activities of the class API Activity, by the words of an event type: 1 is Create, 3 is
 * Update, 4 is Delete. Any other type is an activity of the kind Other (99).
 */
const ACTIVITIES: readonly (readonly [words: RegExp, activity: number])[] = [
  [
    /^(enrollment|token_exchange)$|_(created|registered|added|issued|credential|bound|saved|linked|claimed|allowed|assigned|withheld)$/,
    1,
  ],
  [
    /_(updated|renamed|changed|rotated|activated?|deactivated?|promote|demote|approved|verified|unverified|waived|readmitted|parted|given|taken_over)$/,
    3,
  ],
  [
    /_(removed|deleted|revoked|ended|unbound|unlinked|released|withdrawn|remove_user|revoke_credentials|revocation_failed)$/,
    4,
  ],
];

/** The activity of a SCIM request, by the operation in the details of its event. */
const SCIM_ACTIVITIES = new Map<unknown, number>([
  ['create', 1],
  ['update', 3],
  ['delete', 4],
]);

/**
 * Renders an event as a document of the Open Cybersecurity Schema Framework. Logins and logouts
 * have the class Authentication, and all other events have the class API Activity. Facts for which
 * the class has no attribute are in `unmapped`, under the names of the API.
 *
 * @param cursor the cursor after the event, if the event was read from the feed for programs
 */
export function ocsfEvent(row: AuditRow, cursor?: string): object {
  const activity = AUTHENTICATIONS[row.type];
  const of = activity === undefined ? apiActivity(row) : authentication(row, activity);
  return {
    ...of,
    type_uid: of.class_uid * 100 + of.activity_id,
    time: row.createdAt.getTime(),
    severity_id: INFORMATIONAL,
    status_id: /_(failed|refused|withheld)$/.test(row.type) ? FAILURE : SUCCESS,
    metadata: {
      version: VERSION,
      product: PRODUCT,
      uid: row.id,
      event_code: row.type,
      log_name: row.class,
      ...(row.requestId !== null && { correlation_uid: row.requestId }),
    },
    ...(row.userAgent !== null && { http_request: { user_agent: row.userAgent } }),
    unmapped: {
      subject_id: row.subjectId,
      subject_email: row.subjectEmail,
      client_name: row.clientName,
      details: row.details,
      ...(cursor !== undefined && { cursor }),
    },
  };
}

function authentication(row: AuditRow, activity: number) {
  const user = userOf(row.subjectId ?? row.actorId, row.subjectEmail ?? row.actorEmail);
  return {
    category_uid: CATEGORY.identity,
    class_uid: CLASS.authentication,
    activity_id: activity,
    user: user ?? { name: 'unknown' },
    service: { name: PRODUCT.name },
    ...(row.ip !== null && { src_endpoint: { ip: row.ip } }),
  };
}

function apiActivity(row: AuditRow) {
  const activity = activityOf(row);
  const user = userOf(row.actorId, row.actorEmail);
  return {
    category_uid: CATEGORY.application,
    class_uid: CLASS.apiActivity,
    activity_id: activity,
    ...(activity === OTHER && { activity_name: row.type }),
    actor: user ? { user } : { app_name: PRODUCT.name },
    api: { operation: row.type, service: { name: PRODUCT.name } },
    // An event without an IP address was caused by the service itself.
    src_endpoint: row.ip === null ? { svc_name: PRODUCT.name } : { ip: row.ip },
  };
}

function activityOf({ type, details }: AuditRow): number {
  if (type === 'scim_operation') return SCIM_ACTIVITIES.get(details['operation']) ?? OTHER;
  return ACTIVITIES.find(([words]) => words.test(type))?.[1] ?? OTHER;
}

function userOf(id: string | null, email: string | null) {
  if (id === null && email === null) return undefined;
  return {
    ...(id !== null && { uid: id }),
    ...(email !== null && { name: email, email_addr: email }),
  };
}
