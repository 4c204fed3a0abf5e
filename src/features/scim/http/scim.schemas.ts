import { z } from 'zod';
import {
  ENTERPRISE_ATTRIBUTES,
  ENTERPRISE_URN,
  GROUP_ATTRIBUTES,
  USER_ATTRIBUTES,
  type Attribute,
} from '../language/scim-language.js';

/** The Zod schema for each type of an attribute. */
const TYPES = {
  string: () => z.string(),
  boolean: () => z.boolean(),
  integer: () => z.int(),
  dateTime: () => z.iso.datetime(),
  binary: () => z.string(),
  reference: () => z.string(),
} as const satisfies Record<Exclude<Attribute['type'], 'complex'>, () => z.ZodType>;

type Direction = 'written' | 'shown';

/**
 * Converts the attributes of a SCIM resource to a Zod schema, so that `/openapi.json` follows the
 * definitions by which bodies are parsed.
 */
function shapeOf(attributes: readonly Attribute[], direction: Direction): z.ZodRawShape {
  const hidden = direction === 'written' ? 'readOnly' : 'writeOnly';
  const rows = attributes
    .filter(({ mutability }) => mutability !== hidden)
    .map((attribute) => [attribute.name, schemaOf(attribute, direction)]);
  return Object.fromEntries(rows) as z.ZodRawShape;
}

function schemaOf(attribute: Attribute, direction: Direction): z.ZodType {
  const { type, multiValued, required, description, subAttributes = [] } = attribute;
  const one: z.ZodType =
    type === 'complex' ? z.looseObject(shapeOf(subAttributes, direction)) : TYPES[type]();
  const schema = (multiValued ? z.array(one) : one).meta({ description });
  // In a response no attribute is required, because a client may ask for some of them only (RFC
  // 7644 §3.9).
  return required && direction === 'written' ? schema : schema.optional();
}

const schemas = z.array(z.string());
const meta = z.looseObject({ resourceType: z.string(), location: z.string() }).optional();

const enterprise = (direction: Direction) => ({
  [ENTERPRISE_URN]: z.looseObject(shapeOf(ENTERPRISE_ATTRIBUTES, direction)).optional(),
});

/** A user in a response (RFC 7643 §4.1). */
const USER = z
  .looseObject({
    schemas: schemas.optional(),
    id: z.string(),
    meta,
    ...shapeOf(USER_ATTRIBUTES, 'shown'),
    ...enterprise('shown'),
  })
  .meta({ id: 'ScimUser' });

/** A group in a response (RFC 7643 §4.2). */
const GROUP = z
  .looseObject({
    schemas: schemas.optional(),
    id: z.string(),
    meta,
    ...shapeOf(GROUP_ATTRIBUTES, 'shown'),
  })
  .meta({ id: 'ScimGroup' });

const NEW_USER = z
  .looseObject({
    schemas: schemas.optional(),
    ...shapeOf(USER_ATTRIBUTES, 'written'),
    ...enterprise('written'),
  })
  .meta({ id: 'ScimUserToWrite' });

const NEW_GROUP = z
  .looseObject({ schemas: schemas.optional(), ...shapeOf(GROUP_ATTRIBUTES, 'written') })
  .meta({ id: 'ScimGroupToWrite' });

/** The body of a PATCH: operations on a resource (RFC 7644 §3.5.2). */
const PATCH_BODY = z
  .looseObject({
    schemas: schemas.optional(),
    Operations: z
      .array(
        z.looseObject({
          op: z.string().meta({ description: '`add`, `replace` or `remove`, in any case.' }),
          path: z.string().optional(),
          value: z.unknown().optional(),
        }),
      )
      .min(1),
  })
  .meta({ id: 'ScimPatch' });

/** The parameters by which a client chooses the attributes of a response (RFC 7644 §3.9). */
const PROJECTION = z.object({
  attributes: z.string().optional(),
  excludedAttributes: z.string().optional(),
});

/** A search in a query (RFC 7644 §3.4.2, RFC 9865). */
const SEARCH_QUERY = PROJECTION.extend({
  filter: z.string().optional(),
  sortBy: z.string().optional(),
  sortOrder: z.string().optional().meta({ description: '`ascending` or `descending`.' }),
  startIndex: z
    .string()
    .regex(/^-?\d{1,15}$/)
    .optional(),
  count: z
    .string()
    .regex(/^-?\d{1,15}$/)
    .optional(),
  cursor: z.string().optional(),
});

/** A search in a body (RFC 7644 §3.4.3). */
const SEARCH_BODY = z
  .looseObject({
    schemas: schemas.optional(),
    attributes: z.array(z.string()).optional(),
    excludedAttributes: z.array(z.string()).optional(),
    filter: z.string().optional(),
    sortBy: z.string().optional(),
    sortOrder: z.string().optional(),
    startIndex: z.int().optional(),
    count: z.int().optional(),
    cursor: z.string().optional(),
  })
  .meta({ id: 'ScimSearch' });

const listOf = (resource: z.ZodType) =>
  z.object({
    schemas,
    totalResults: z.int(),
    startIndex: z.int().optional(),
    nextCursor: z.string().optional(),
    itemsPerPage: z.int(),
    Resources: z.array(resource),
  });

/**
 * Returns the content of a response in both media types (RFC 7644 §8.1). Plain JSON is for clients
 * that accept only that.
 */
const inBothTypes = (body: z.ZodType) => ({
  'application/scim+json': body,
  'application/json': body,
});

const SEARCH_REFUSALS = [
  'invalid_filter',
  'invalid_path',
  'invalid_value',
  'invalid_cursor',
  'too_many',
] as const;

/** The errors that a write of a resource can get. */
const WRITE_REFUSALS = [
  'invalid_path',
  'invalid_value',
  'mutability',
  'too_many',
  'uniqueness',
] as const;

const CHANGE_REFUSALS = [
  ...WRITE_REFUSALS,
  'no_target',
  'not_found',
  'precondition_failed',
] as const;

const IF_MATCH = { 'if-match': 'The `ETag` of the version to change; another one is 412.' };
const IF_NONE_MATCH = { 'if-none-match': 'The `ETag` of a version: 304 while it is the same.' };

interface Kind {
  readonly resource: z.ZodType;
  readonly newResource: z.ZodType;
}

/**
 * Describes the PATCH of one kind of resource. The answer is 204 after the PATCH of a large group.
 */
const patchOf = ({ resource }: Kind) =>
  ({
    answers: { 200: inBothTypes(resource), 204: null },
    refusals: [...CHANGE_REFUSALS, 'invalid_filter'],
    asks: { body: PATCH_BODY, query: PROJECTION, headers: IF_MATCH },
  }) as const;

/** The descriptions of the routes of one kind of resource. */
function routesOf(kind: Kind) {
  const { resource, newResource } = kind;
  return {
    create: {
      answers: { 201: inBothTypes(resource) },
      refusals: WRITE_REFUSALS,
      asks: { body: newResource, query: PROJECTION },
    },
    list: {
      answers: { 200: inBothTypes(listOf(resource)) },
      refusals: SEARCH_REFUSALS,
      asks: { query: SEARCH_QUERY },
    },
    search: {
      answers: { 200: inBothTypes(listOf(resource)) },
      refusals: SEARCH_REFUSALS,
      asks: { body: SEARCH_BODY },
    },
    find: {
      answers: { 200: inBothTypes(resource), 304: null },
      refusals: ['invalid_value', 'not_found'],
      asks: { query: PROJECTION, headers: IF_NONE_MATCH },
    },
    replace: {
      answers: { 200: inBothTypes(resource) },
      refusals: CHANGE_REFUSALS,
      asks: { body: newResource, query: PROJECTION, headers: IF_MATCH },
    },
    remove: {
      answers: { 204: null },
      refusals: ['not_found', 'precondition_failed'],
      asks: { headers: IF_MATCH },
    },
  } as const;
}

const ofUsers: Kind = { resource: USER, newResource: NEW_USER };
const ofGroups: Kind = { resource: GROUP, newResource: NEW_GROUP };
const anyResource = z.looseObject({});

/** The descriptions of the SCIM routes for `/openapi.json`. */
export const SCIM_ROUTES = {
  users: {
    ...routesOf(ofUsers),
    patch: { ...patchOf(ofUsers), answers: { 200: inBothTypes(USER) } },
  },
  groups: { ...routesOf(ofGroups), patch: patchOf(ofGroups) },
  all: routesOf({ resource: anyResource, newResource: anyResource }),
  me: { answers: { 501: null }, refusals: ['not_implemented'] },
  bulk: {
    answers: {
      200: inBothTypes(
        z.object({ schemas, Operations: z.array(z.looseObject({ status: z.string() })) }),
      ),
    },
    refusals: ['body_too_large', 'invalid_value'],
    asks: {
      body: z.looseObject({
        schemas: schemas.optional(),
        failOnErrors: z.int().min(1).optional(),
        Operations: z.array(
          z.looseObject({
            method: z.string(),
            path: z.string(),
            bulkId: z.string().optional(),
            version: z.string().optional(),
            data: z.unknown().optional(),
          }),
        ),
      }),
    },
  },
  discoveryList: {
    answers: { 200: inBothTypes(listOf(anyResource)) },
    refusals: ['not_filterable'],
  },
  discovery: { answers: { 200: inBothTypes(anyResource) }, refusals: ['not_found'] },
  config: { answers: { 200: inBothTypes(anyResource) }, refusals: ['not_filterable'] },
} as const;
