import type { AuditType } from '#domain/audit/audit-event.js';
import { isByOperator } from './activity-text.js';
import type { OwnEvent } from './own-events.repository.js';

type Details = OwnEvent['details'];

/**
 * The details of events about access rules that the actor or the subject of the event may see. A
 * member does not see which targets and SCIM groups exist, so the ids of both are left out.
 */
const OF_REACH: Partial<Record<AuditType, (details: Details) => Details>> = {
  access_refused: ({ target, principals, conditions }) => ({
    target: withoutId(target),
    ...(principals !== undefined && { principals }),
    ...(conditions !== undefined && { conditions }),
  }),
  access_ended: ({ target, rule, ...others }) => ({
    target: withoutId(target),
    rule,
    ...countsIn(others),
  }),
  access_rule_changed: withoutGroups,
};

/**
 * Returns the details of an event that its actor or its subject may see. For a refusal these are
 * only the names in the request. So a target that does not exist looks the same as one to which the
 * user is not assigned.
 *
 * @param userId the user who reads the details
 */
export function ownDetails(event: OwnEvent, userId: string): Details {
  const details = isByOperator(event) ? withoutOperator(event.details) : event.details;
  const own = OF_REACH[event.type]?.(details) ?? details;
  return event.actorId === userId ? own : withoutScimToken(own);
}

/**
 * The fields of the details that say who the operator of the service is, and on which machine.
 * `sudo_user` is in events of earlier versions only.
 */
const OF_OPERATOR: ReadonlySet<string> = new Set([
  'os_user',
  'os_uid',
  'os_login_uid',
  'claimed_user',
  'sudo_user',
  'host',
]);

/**
 * Removes from the details of an event who the operator of the service is, and on which machine the
 * operator acted. Only the admins of the organization may see them.
 */
function withoutOperator(details: Details): Details {
  return Object.fromEntries(Object.entries(details).filter(([name]) => !OF_OPERATOR.has(name)));
}

/** Removes the id of the SCIM token that made a change. Only admins may see it. */
function withoutScimToken(details: Details): Details {
  const { scim_token_id: _, ...others } = details;
  return others;
}

/**
 * Removes the id of a target, because the id would show that the target exists. A target that a
 * request names may not exist.
 */
function withoutId(target: unknown): Details {
  const { kind, name } = Object(target) as Details;
  return { kind, name };
}

/** Returns the numbers of the ended credentials, such as `certificates`. */
function countsIn(details: Details): Details {
  return Object.fromEntries(
    Object.entries(details).filter(([, value]) => typeof value === 'number'),
  );
}

/**
 * Removes the SCIM groups that a change of a rule assigned or removed; the people stay. If a list
 * named only groups, the whole list is removed.
 */
function withoutGroups(details: Details): Details {
  return Object.fromEntries(
    Object.entries(details).flatMap(([name, value]): [string, unknown][] => {
      if (!Array.isArray(value)) return [[name, value]];
      const people = value.filter((each) => !Object.hasOwn(Object(each), 'group'));
      return people.length === 0 ? [] : [[name, people]];
    }),
  );
}
