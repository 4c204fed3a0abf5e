import { expect, it } from 'vitest';
import { AUDIT_TYPES } from '#domain/audit/audit-event.js';
import type { AuditRow } from '#domain/audit/audit-filter.js';
import { ocsfEvent } from '../../../src/features/audit-log/ocsf-event.js';

/**
 * The types of audit events that get the activity Other, because the OCSF class API Activity has no
 * activity for them.
 */
const OTHER = [
  'access_refused',
  'admin_access_refused',
  'database_confirmed',
  'enrollment_pass_used',
  'enrollment_refused',
  'event_receiver_tested',
  'identity_bind_refused',
  'notice_dead_lettered',
  'reconciliation_ordered',
  'scim_request_refused',
  'scim_twin_found',
  'secret_confirmed',
];

function activityOf(type: string, details: Readonly<Record<string, unknown>> = {}) {
  const row = {
    id: '01890000-0000-7000-8000-000000000001',
    type,
    class: 'admin',
    subjectId: null,
    subjectEmail: null,
    actorId: null,
    actorEmail: null,
    clientName: null,
    requestId: null,
    ip: null,
    userAgent: null,
    createdAt: new Date(0),
    details,
  } as unknown as AuditRow;
  const { class_uid, activity_id } = ocsfEvent(row) as { class_uid: number; activity_id: number };
  return `${class_uid}.${activity_id}`;
}

it('has an activity for each type of event but a few', () => {
  const others = AUDIT_TYPES.filter((type) => activityOf(type) === '6003.99');
  expect(others.toSorted()).toEqual([...OTHER, 'scim_operation'].toSorted());
});

it.each([
  ['login_failed', '3002.1'],
  ['session_ended', '3002.2'],
  ['enrollment', '6003.1'],
  ['token_exchange', '6003.1'],
  ['org_provider_allowed', '6003.1'],
  ['admin_activate', '6003.3'],
  ['admin_deactivate', '6003.3'],
  ['org_issuer_activated', '6003.3'],
  ['org_domain_unverified', '6003.3'],
  ['admin_revoke_credentials', '6003.4'],
  ['github_revocation_failed', '6003.4'],
  ['identity_unbound', '6003.4'],
])('%s has the class and activity %s', (type, activity) => {
  expect(activityOf(type)).toBe(activity);
});

it.each([
  ['create', '6003.1'],
  ['update', '6003.3'],
  ['delete', '6003.4'],
])('a SCIM %s has the class and activity %s', (operation, activity) => {
  expect(activityOf('scim_operation', { operation })).toBe(activity);
});
