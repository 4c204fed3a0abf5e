import { attribute, complex, readOnly, reference, text, type Attribute } from './attribute.js';

const supported = (of: string): Attribute =>
  attribute('boolean', 'supported', `Whether ${of} is supported.`, { required: true });

/** The attributes of ServiceProviderConfig (RFC 7643 §5, RFC 9865 §4 for `pagination`). */
export const SERVICE_PROVIDER_CONFIG_ATTRIBUTES: readonly Attribute[] = [
  reference('documentationUri', 'Where the documentation for people lies.', ['external']),
  complex('patch', 'PATCH.', [supported('PATCH')], { required: true }),
  complex(
    'bulk',
    'Bulk operations.',
    [
      supported('bulk'),
      attribute('integer', 'maxOperations', 'The most operations in a request.', {
        required: true,
      }),
      attribute('integer', 'maxPayloadSize', 'The most bytes in a request.', { required: true }),
    ],
    { required: true },
  ),
  complex(
    'filter',
    'Filtering.',
    [
      supported('filtering'),
      attribute('integer', 'maxResults', 'The most resources in a response.', { required: true }),
    ],
    { required: true },
  ),
  complex('changePassword', 'Changing passwords.', [supported('changing passwords')], {
    required: true,
  }),
  complex('sort', 'Sorting.', [supported('sorting')], { required: true }),
  complex('etag', 'Entity tags.', [supported('an entity tag')], { required: true }),
  complex('pagination', 'Paging.', [
    attribute('boolean', 'cursor', 'Whether pages by cursor are supported.', { required: true }),
    attribute('boolean', 'index', 'Whether pages by index are supported.', { required: true }),
    text('defaultPaginationMethod', 'The method used unless the client says otherwise.', {
      canonicalValues: ['cursor', 'index'],
    }),
    attribute('integer', 'defaultPageSize', 'The size of a page unless the client says otherwise.'),
    attribute('integer', 'maxPageSize', 'The largest size of a page.'),
    attribute('integer', 'cursorTimeout', 'The seconds a cursor lives at least.'),
  ]),
  complex(
    'authenticationSchemes',
    'How clients authenticate.',
    [
      text('type', 'The kind of scheme.', {
        required: true,
        canonicalValues: ['oauth', 'oauth2', 'oauthbearertoken', 'httpbasic', 'httpdigest'],
      }),
      text('name', 'The name of the scheme.', { required: true }),
      text('description', 'What the scheme is.', { required: true }),
      reference('specUri', 'Where the scheme is specified.', ['external']),
      reference('documentationUri', 'Where the scheme is documented.', ['external']),
      attribute('boolean', 'primary', 'Whether this is the preferred scheme.'),
    ],
    { multiValued: true, required: true },
  ),
].map(readOnly);

/** The attributes of ResourceType (RFC 7643 §6). */
export const RESOURCE_TYPE_ATTRIBUTES: readonly Attribute[] = [
  text('id', 'The identifier of the resource type.'),
  text('name', 'The name of the resource type.', { required: true }),
  text('description', 'What the resource type is.'),
  reference('endpoint', 'The path of its resources.', ['uri'], { required: true }),
  reference('schema', 'The URI of its core schema.', ['uri'], { required: true }),
  complex(
    'schemaExtensions',
    'The extensions of its schema.',
    [
      reference('schema', 'The URI of the extension.', ['uri'], { required: true }),
      attribute('boolean', 'required', 'Whether every resource has the extension.', {
        required: true,
      }),
    ],
    { multiValued: true },
  ),
].map(readOnly);

/**
 * The characteristics of an attribute in a schema document. A sub-attribute has the same ones,
 * except sub-attributes of its own.
 */
const CHARACTERISTICS: readonly Attribute[] = [
  text('name', 'The name of the attribute.', { required: true, caseExact: true }),
  text('type', 'The data type of the attribute.', {
    required: true,
    canonicalValues: [
      'string',
      'complex',
      'boolean',
      'decimal',
      'integer',
      'dateTime',
      'reference',
      'binary',
    ],
  }),
  attribute('boolean', 'multiValued', 'Whether the attribute is a list.', { required: true }),
  text('description', 'What the attribute is.'),
  attribute('boolean', 'required', 'Whether the attribute must be there.'),
  text('canonicalValues', 'Values a client may expect.', { multiValued: true, caseExact: true }),
  attribute('boolean', 'caseExact', 'Whether case matters.'),
  text('mutability', 'Whether and when the attribute can be written.', {
    caseExact: true,
    canonicalValues: ['readOnly', 'readWrite', 'immutable', 'writeOnly'],
  }),
  text('returned', 'When the attribute is in a response.', {
    caseExact: true,
    canonicalValues: ['always', 'never', 'default', 'request'],
  }),
  text('uniqueness', 'Among what the value is unique.', {
    caseExact: true,
    canonicalValues: ['none', 'server', 'global'],
  }),
  text('referenceTypes', 'What a reference may point to.', { multiValued: true, caseExact: true }),
];

/** The attributes of Schema (RFC 7643 §7). */
export const SCHEMA_ATTRIBUTES: readonly Attribute[] = [
  reference('id', 'The URI of the schema.', ['uri'], { required: true }),
  text('name', 'The name of the schema.', { required: true }),
  text('description', 'What the schema describes.'),
  complex(
    'attributes',
    'The attributes of the schema.',
    [
      ...CHARACTERISTICS,
      complex('subAttributes', 'The sub-attributes of a complex attribute.', CHARACTERISTICS, {
        multiValued: true,
      }),
    ],
    { multiValued: true, required: true },
  ),
].map(readOnly);
