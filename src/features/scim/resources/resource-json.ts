import {
  GROUP_SCHEMA,
  GROUP_URN,
  project,
  USER_SCHEMA,
  USER_URN,
  versionTag,
  type Projection,
} from '../language/scim-language.js';
import type { DirectoryGroup } from '#domain/directory/provisioning/groups.repository.js';
import type { GroupMember } from '#domain/directory/provisioning/memberships.repository.js';
import {
  ENTERPRISE_URN,
  withAddresses,
  type DirectoryUser,
} from '#domain/directory/provisioning/directory-user.js';

/**
 * A SCIM resource with its version. The tag is undefined if a part of the resource was not read.
 */
export interface Tagged {
  readonly id: string;
  readonly tag: string | undefined;
}

/**
 * Returns the version of a resource as an entity tag (RFC 7644 §3.14). The tag changes with
 * everything that clients see of the resource.
 */
export function entityTag({ tag }: Pick<Tagged, 'tag'>): string {
  if (tag === undefined) throw new Error('a part of the resource was not read');
  return versionTag(tag);
}

/** Returns the URL of a SCIM resource. */
export function locationOf(base: string, type: 'Users' | 'Groups', id: string): string {
  return `${base}/${type}/${id}`;
}

const CORE = JSON.stringify([USER_URN]);
const WITH_ENTERPRISE = JSON.stringify([USER_URN, ENTERPRISE_URN]);
const ENTERPRISE_KEY = `"${ENTERPRISE_URN}":`;

/**
 * Renders a user as JSON. The stored JSON text is copied and not parsed, because a list may have a
 * thousand users.
 *
 * @param base the base URL of the SCIM service
 */
export function userJson(user: DirectoryUser, projection: Projection, base: string): string {
  const { id, userName, externalId, active, attributes, groups } = user;
  const parts = [
    `{"schemas":${attributes.includes(ENTERPRISE_KEY) ? WITH_ENTERPRISE : CORE}`,
    `"id":"${id}"`,
    `"userName":${JSON.stringify(userName)}`,
  ];
  if (externalId !== null) parts.push(`"externalId":${JSON.stringify(externalId)}`);
  parts.push(`"active":${active}`);
  if (attributes !== '{}') parts.push(withAddresses(attributes.slice(1, -1), base));
  if (groups !== undefined && groups !== '[]') {
    parts.push(`"groups":${withAddresses(groups, base)}`);
  }
  parts.push(`"meta":${metaJson(user, 'User', locationOf(base, 'Users', id))}`);
  const json = `${parts.join(',')}}`;
  if (projection.isDefault) return json;
  return JSON.stringify(
    project(JSON.parse(json) as Record<string, unknown>, projection, USER_SCHEMA),
  );
}

/**
 * Renders a group as JSON without its members and the closing brace, because the members follow in
 * batches.
 */
export function groupHead(group: DirectoryGroup, projection: Projection, base: string): string {
  const { id, displayName, externalId } = group;
  const whole = {
    schemas: [GROUP_URN],
    id,
    displayName,
    ...(externalId === null ? {} : { externalId }),
    meta: meta(group, 'Group', locationOf(base, 'Groups', id)),
  };
  const shown = projection.isDefault ? whole : project(whole, projection, GROUP_SCHEMA);
  return JSON.stringify(shown).slice(0, -1);
}

/**
 * Returns a function that renders a member of a group as JSON, with the parts that the client
 * wants.
 */
export function memberRenderer(
  projection: Projection,
  base: string,
): (member: GroupMember) => string {
  const isShown = (name: string) => projection.includes(`members.${name}`);
  if (MEMBER_PARTS.every(isShown)) return (member) => memberJson(member, base);
  return (member) => {
    const whole = Object.entries(JSON.parse(memberJson(member, base)) as object);
    return JSON.stringify(Object.fromEntries(whole.filter(([name]) => isShown(name))));
  };
}

const MEMBER_PARTS = ['value', '$ref', 'display', 'type'];

function memberJson({ userId, display }: GroupMember, base: string): string {
  return `{"value":"${userId}","$ref":"${locationOf(base, 'Users', userId)}","display":${JSON.stringify(display)},"type":"User"}`;
}

interface Versioned extends Tagged {
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

function meta(of: Versioned, resourceType: 'User' | 'Group', location: string): object {
  return {
    resourceType,
    created: of.createdAt.toISOString(),
    lastModified: of.updatedAt.toISOString(),
    location,
    ...(of.tag === undefined ? {} : { version: entityTag(of) }),
  };
}

function metaJson(of: Versioned, resourceType: 'User' | 'Group', location: string): string {
  return JSON.stringify(meta(of, resourceType, location));
}
