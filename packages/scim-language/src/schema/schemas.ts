import { asciiLowerCase } from '../text/ascii.js';
import {
  attribute,
  complex,
  readOnly,
  reference,
  text,
  type Attribute,
} from './attributes/attribute.js';
import {
  RESOURCE_TYPE_ATTRIBUTES,
  SCHEMA_ATTRIBUTES,
  SERVICE_PROVIDER_CONFIG_ATTRIBUTES,
} from './attributes/service-schemas.js';
import {
  ENTERPRISE_ATTRIBUTES,
  GROUP_ATTRIBUTES,
  USER_ATTRIBUTES,
} from './attributes/user-and-group-attributes.js';

export const USER_URN = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const GROUP_URN = 'urn:ietf:params:scim:schemas:core:2.0:Group';
export const ENTERPRISE_URN = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';
export const SCHEMA_URN = 'urn:ietf:params:scim:schemas:core:2.0:Schema';
export const RESOURCE_TYPE_URN = 'urn:ietf:params:scim:schemas:core:2.0:ResourceType';
export const SERVICE_PROVIDER_CONFIG_URN =
  'urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig';

/** A schema: attributes under a URI (RFC 7643 §7). */
export interface Schema {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly attributes: readonly Attribute[];
}

/** A resource type: its core schema and its extensions (RFC 7643 §6). */
export interface ResourceSchema {
  readonly name: 'User' | 'Group';
  readonly description: string;
  readonly endpoint: string;
  readonly core: Schema;
  readonly extensions: readonly Schema[];
}

/** A reference to an attribute or sub-attribute, found by its name. */
export interface AttributeReference {
  /**
   * The URN of the extension to which the attribute belongs; undefined for core attributes. A
   * resource has the values of an extension under its URN.
   */
  readonly extension: string | undefined;
  readonly attribute: Attribute;
  readonly sub: Attribute | undefined;
  /** The canonical spelling: `name.givenName`, `urn:…:User:manager.value`. */
  readonly path: string;
}

/** The attributes that every resource has. No schema lists them (RFC 7643 §3.1). */
const COMMON_ATTRIBUTES: readonly Attribute[] = [
  reference('schemas', 'The schemas of the resource.', ['uri'], {
    multiValued: true,
    returned: 'always',
  }),
  text('id', 'The identifier of the resource.', { caseExact: true, returned: 'always' }),
  complex('meta', 'What the service knows about the resource.', [
    text('resourceType', 'The name of the resource type.', { caseExact: true }),
    attribute('dateTime', 'created', 'When the resource was added.'),
    attribute('dateTime', 'lastModified', 'When the resource last changed.'),
    reference('location', 'The address of the resource.', ['uri']),
    text('version', 'The version of the resource.', { caseExact: true }),
  ]),
].map(readOnly);

const USER_CORE: Schema = {
  id: USER_URN,
  name: 'User',
  description: 'User Account',
  attributes: USER_ATTRIBUTES,
};
const GROUP_CORE: Schema = {
  id: GROUP_URN,
  name: 'Group',
  description: 'Group',
  attributes: GROUP_ATTRIBUTES,
};
const ENTERPRISE: Schema = {
  id: ENTERPRISE_URN,
  name: 'EnterpriseUser',
  description: 'Enterprise user',
  attributes: ENTERPRISE_ATTRIBUTES,
};

export const USER_SCHEMA: ResourceSchema = {
  name: 'User',
  description: 'User Account',
  endpoint: '/Users',
  core: USER_CORE,
  extensions: [ENTERPRISE],
};
export const GROUP_SCHEMA: ResourceSchema = {
  name: 'Group',
  description: 'Group',
  endpoint: '/Groups',
  core: GROUP_CORE,
  extensions: [],
};

/** Every schema of the service, in the order of `/Schemas`. */
export const SCHEMAS: readonly Schema[] = [
  USER_CORE,
  ENTERPRISE,
  GROUP_CORE,
  {
    id: SERVICE_PROVIDER_CONFIG_URN,
    name: 'ServiceProviderConfig',
    description: 'What the service supports',
    attributes: SERVICE_PROVIDER_CONFIG_ATTRIBUTES,
  },
  {
    id: RESOURCE_TYPE_URN,
    name: 'ResourceType',
    description: 'A type of resource',
    attributes: RESOURCE_TYPE_ATTRIBUTES,
  },
  { id: SCHEMA_URN, name: 'Schema', description: 'A schema', attributes: SCHEMA_ATTRIBUTES },
];

type Names = ReadonlyMap<string, Attribute>;

const namesIn = (attributes: readonly Attribute[]): Names =>
  new Map(attributes.map((each) => [asciiLowerCase(each.name), each]));

/**
 * The attributes of each schema by their names in lower case. A Map is used, because in an object a
 * name such as `__proto__` from a client would have a meaning.
 */
const NAMES = new Map<readonly Attribute[], Names>();

function find(attributes: readonly Attribute[], name: string): Attribute | undefined {
  let names = NAMES.get(attributes);
  if (!names) {
    names = namesIn(attributes);
    NAMES.set(attributes, names);
  }
  return names.get(asciiLowerCase(name));
}

/**
 * Finds a sub-attribute by its name, in any case; undefined if the attribute has none of this name.
 */
export function subAttribute(of: Attribute, name: string): Attribute | undefined {
  return of.subAttributes && find(of.subAttributes, name);
}

/** Finds a schema of a resource by its URN, in any case; undefined for another URN. */
export function findSchema(resource: ResourceSchema, urn: string): Schema | undefined {
  const wanted = asciiLowerCase(urn);
  return [resource.core, ...resource.extensions].find(({ id }) => asciiLowerCase(id) === wanted);
}

/**
 * Finds an attribute by its name in any case: `attr`, `attr.sub`, `URN:attr`, `URN:attr.sub`, and
 * `URN.attr`, which some clients write. URNs contain dots and colons, so only the known URNs are
 * recognized as prefixes. A name without a URN may belong to an extension, because Microsoft Entra
 * writes `manager` without one.
 */
export function findAttribute(
  resource: ResourceSchema,
  name: string,
): AttributeReference | undefined {
  const lower = asciiLowerCase(name);
  for (const schema of [resource.core, ...resource.extensions]) {
    const urn = asciiLowerCase(schema.id);
    if (!lower.startsWith(`${urn}:`) && !lower.startsWith(`${urn}.`)) continue;
    return findIn(resource, schema, name.slice(schema.id.length + 1));
  }
  for (const schema of [resource.core, ...resource.extensions]) {
    const found = findIn(resource, schema, name);
    if (found) return found;
  }
  return undefined;
}

function findIn(
  resource: ResourceSchema,
  schema: Schema,
  name: string,
): AttributeReference | undefined {
  const dot = name.indexOf('.');
  const first = dot === -1 ? name : name.slice(0, dot);
  const isCore = schema === resource.core;
  const found =
    find(schema.attributes, first) ?? (isCore ? find(COMMON_ATTRIBUTES, first) : undefined);
  if (!found) return undefined;
  const sub = dot === -1 ? undefined : subAttribute(found, name.slice(dot + 1));
  if (dot !== -1 && !sub) return undefined;
  return referenceTo(isCore ? undefined : schema.id, found, sub);
}

/** Makes a reference to an attribute, with its canonical path. */
export function referenceTo(
  extension: string | undefined,
  of: Attribute,
  sub?: Attribute,
): AttributeReference {
  const path = `${extension ? `${extension}:` : ''}${of.name}${sub ? `.${sub.name}` : ''}`;
  return { extension, attribute: of, sub, path };
}

/** Lists every attribute of a resource. The attributes that every resource has come first. */
export function attributesOf(resource: ResourceSchema): AttributeReference[] {
  return [
    ...COMMON_ATTRIBUTES.map((each) => referenceTo(undefined, each)),
    ...resource.core.attributes.map((each) => referenceTo(undefined, each)),
    ...resource.extensions.flatMap(({ id, attributes }) =>
      attributes.map((each) => referenceTo(id, each)),
    ),
  ];
}
