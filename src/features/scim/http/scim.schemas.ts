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
  const one: z.ZodType = type === 'complex' ? objectOf(subAttributes, direction) : TYPES[type]();
  const schema = (multiValued ? z.array(one) : one).meta({ description });
  // In a response no attribute is required, because a client may ask for some of them only (RFC
  // 7644 §3.9).
  return required && direction === 'written' ? schema : schema.optional();
}

/**
 * Makes the schema of an object. In a request, other attributes are allowed, because the service
 * ignores them. A response has only the defined attributes.
 */
function objectOf(attributes: readonly Attribute[], direction: Direction): z.ZodType {
  const shape = shapeOf(attributes, direction);
  return direction === 'written' ? z.looseObject(shape) : z.object(shape);
}

const schemas = z.array(z.string()).describe('The URNs of the schemas of this JSON.');
const meta = z
  .object({
    resourceType: z.string().describe('The name of the resource type.'),
    created: z.iso.datetime().optional().describe('The time of its creation.'),
    lastModified: z.iso.datetime().optional().describe('The time of its last change.'),
    location: z.string().describe('The URL of the resource.'),
    version: z.string().optional().describe('Its `ETag`.'),
  })
  .optional()
  .describe('The type, the URL, the times and the version of the resource.');
const id = z.string().describe('The id of the resource.');

const enterprise = (direction: Direction) => ({
  [ENTERPRISE_URN]: objectOf(ENTERPRISE_ATTRIBUTES, direction)
    .optional()
    .describe('The attributes of the enterprise extension (RFC 7643 §4.3).'),
});

/** A user in a response (RFC 7643 §4.1). */
const USER = z
  .looseObject({
    schemas: schemas.optional(),
    id,
    meta,
    ...shapeOf(USER_ATTRIBUTES, 'shown'),
    ...enterprise('shown'),
  })
  .meta({ id: 'ScimUser', description: 'A user (RFC 7643 §4.1).' });

/** A group in a response (RFC 7643 §4.2). */
const GROUP = z
  .looseObject({
    schemas: schemas.optional(),
    id,
    meta,
    ...shapeOf(GROUP_ATTRIBUTES, 'shown'),
  })
  .meta({ id: 'ScimGroup', description: 'A group (RFC 7643 §4.2).' });

const NEW_USER = z
  .looseObject({
    schemas: schemas.optional(),
    ...shapeOf(USER_ATTRIBUTES, 'written'),
    ...enterprise('written'),
  })
  .meta({ id: 'ScimUserToWrite', description: 'A user to create or to replace.' });

const NEW_GROUP = z
  .looseObject({ schemas: schemas.optional(), ...shapeOf(GROUP_ATTRIBUTES, 'written') })
  .meta({ id: 'ScimGroupToWrite', description: 'A group to create or to replace.' });

/** The body of a PATCH: operations on a resource (RFC 7644 §3.5.2). */
const PATCH_BODY = z
  .looseObject({
    schemas: schemas.optional(),
    Operations: z
      .array(
        z.looseObject({
          op: z.string().meta({ description: '`add`, `replace` or `remove`, in any case.' }),
          path: z.string().optional().describe('The attribute, with a filter for its values.'),
          value: z.unknown().optional().describe('The value to add or to replace.'),
        }),
      )
      .min(1)
      .describe('The operations, in their order.'),
  })
  .meta({ id: 'ScimPatch', description: 'Changes of a resource (RFC 7644 §3.5.2).' });

/** The descriptions of the parameters of a search, in a query and in a body. */
const SEARCH = {
  attributes: 'The attributes to show, separated by commas in a query.',
  excludedAttributes: 'The attributes to leave out, separated by commas in a query.',
  filter: 'The condition, such as `userName eq "ada@example.com"` (RFC 7644 §3.4.2.2).',
  sortBy: 'The attribute by which the list is sorted.',
  sortOrder: '`ascending` or `descending`.',
  startIndex: 'The number of the first resource of the page, from 1.',
  count: 'The most resources of the page.',
  cursor: 'The `nextCursor` of the page before; empty for the first page (RFC 9865).',
} as const;

/** The parameters by which a client chooses the attributes of a response (RFC 7644 §3.9). */
const PROJECTION = z.object({
  attributes: z.string().optional().describe(SEARCH.attributes),
  excludedAttributes: z.string().optional().describe(SEARCH.excludedAttributes),
});

/** A search in a query (RFC 7644 §3.4.2, RFC 9865). */
const SEARCH_QUERY = PROJECTION.extend({
  filter: z.string().optional().describe(SEARCH.filter),
  sortBy: z.string().optional().describe(SEARCH.sortBy),
  sortOrder: z.string().optional().describe(SEARCH.sortOrder),
  startIndex: z.int().optional().describe(SEARCH.startIndex),
  count: z.int().optional().describe(SEARCH.count),
  cursor: z.string().optional().describe(SEARCH.cursor),
});

/** A search in a body (RFC 7644 §3.4.3). */
const SEARCH_BODY = z
  .looseObject({
    schemas: schemas.optional(),
    attributes: z.array(z.string()).optional().describe(SEARCH.attributes),
    excludedAttributes: z.array(z.string()).optional().describe(SEARCH.excludedAttributes),
    filter: z.string().optional().describe(SEARCH.filter),
    sortBy: z.string().optional().describe(SEARCH.sortBy),
    sortOrder: z.string().optional().describe(SEARCH.sortOrder),
    startIndex: z.int().optional().describe(SEARCH.startIndex),
    count: z.int().optional().describe(SEARCH.count),
    cursor: z.string().optional().describe(SEARCH.cursor),
  })
  .meta({ id: 'ScimSearch', description: 'A search in a body (RFC 7644 §3.4.3).' });

const listOf = (resource: z.ZodType) =>
  z
    .object({
      schemas,
      totalResults: z.int().describe('The number of all results.'),
      startIndex: z.int().optional().describe('The number of the first resource of the page.'),
      nextCursor: z.string().optional().describe('The `cursor` of the next page (RFC 9865).'),
      itemsPerPage: z.int().describe('The number of resources of the page.'),
      Resources: z.array(resource).describe('The resources.'),
    })
    .describe('A page of resources (RFC 7644 §3.4.2).');

/**
 * Returns the content of a response in both media types (RFC 7644 §8.1). Plain JSON is for clients
 * that do not accept `application/scim+json`.
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
  'invalid_count',
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
const OF_ID = { id: 'The id of the resource.' };
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
    asks: { path: OF_ID, body: PATCH_BODY, query: PROJECTION, headers: IF_MATCH },
  }) as const;

/** Returns the descriptions of all routes for one kind of resource, for `/openapi.json`. */
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
      asks: { path: OF_ID, query: PROJECTION, headers: IF_NONE_MATCH },
    },
    replace: {
      answers: { 200: inBothTypes(resource) },
      refusals: CHANGE_REFUSALS,
      asks: { path: OF_ID, body: newResource, query: PROJECTION, headers: IF_MATCH },
    },
    remove: {
      answers: { 204: null },
      refusals: ['not_found', 'precondition_failed'],
      asks: { path: OF_ID, headers: IF_MATCH },
    },
  } as const;
}

const ofUsers: Kind = { resource: USER, newResource: NEW_USER };
const ofGroups: Kind = { resource: GROUP, newResource: NEW_GROUP };
const anyResource = z
  .looseObject({})
  .meta({ id: 'ScimResource', description: 'A resource of SCIM (RFC 7643).' });

/** The descriptions of the SCIM routes for `/openapi.json`. */
export const SCIM_ROUTES = {
  users: {
    ...routesOf(ofUsers),
    patch: { ...patchOf(ofUsers), answers: { 200: inBothTypes(USER) } },
  },
  groups: { ...routesOf(ofGroups), patch: patchOf(ofGroups) },
  all: routesOf({ resource: anyResource, newResource: anyResource }),
  bulk: {
    answers: {
      200: inBothTypes(
        z
          .object({
            schemas,
            Operations: z
              .array(z.looseObject({ status: z.string().describe('The HTTP status as a text.') }))
              .describe('The result of each operation.'),
          })
          .describe('The results of a bulk request.'),
      ),
    },
    refusals: ['body_too_large', 'invalid_value'],
    asks: {
      body: z
        .looseObject({
          schemas: schemas.optional(),
          failOnErrors: z
            .int()
            .min(1)
            .optional()
            .describe('The number of errors at which the request stops.'),
          Operations: z
            .array(
              z.looseObject({
                method: z.string().describe('`POST`, `PUT`, `PATCH` or `DELETE`.'),
                path: z.string().describe('The path of the resource, such as `/Users`.'),
                bulkId: z
                  .string()
                  .optional()
                  .describe('A name for a new resource in this request.'),
                version: z.string().optional().describe('The `ETag` of the version to change.'),
                data: z.unknown().optional().describe('The body of the operation.'),
              }),
            )
            .describe('The operations, in their order.'),
        })
        .meta({ id: 'ScimBulk', description: 'Several operations (RFC 7644 §3.7).' }),
    },
  },
  discoveryList: {
    answers: { 200: inBothTypes(listOf(anyResource)) },
    refusals: ['not_filterable'],
  },
  discovery: {
    answers: { 200: inBothTypes(anyResource) },
    refusals: ['not_found'],
    asks: { path: { id: 'The URN of the schema, or the name of the resource type.' } },
  },
  config: { answers: { 200: inBothTypes(anyResource) }, refusals: ['not_filterable'] },
} as const;
