import type { Attribute } from '../schema/attributes/attribute.js';
import {
  GROUP_SCHEMA,
  RESOURCE_TYPE_URN,
  SCHEMA_URN,
  SCHEMAS,
  USER_SCHEMA,
} from '../schema/schemas.js';

/** Describes an attribute for `/Schemas` (RFC 7643 §7). */
function attributeDocument(of: Attribute): object {
  const isText = ['string', 'reference', 'binary'].includes(of.type);
  return {
    name: of.name,
    type: of.type,
    ...(of.subAttributes && { subAttributes: of.subAttributes.map(attributeDocument) }),
    multiValued: of.multiValued,
    description: of.description,
    required: of.required,
    ...(of.canonicalValues && { canonicalValues: of.canonicalValues }),
    ...(isText && { caseExact: of.caseExact }),
    mutability: of.mutability,
    returned: of.returned,
    uniqueness: of.uniqueness,
    ...(of.referenceTypes && { referenceTypes: of.referenceTypes }),
  };
}

/** A document of a discovery endpoint (RFC 7644 §4). */
export interface ScimDocument {
  readonly id: string;
  readonly [member: string]: unknown;
}

/**
 * Lists the resources of `/Schemas` (RFC 7643 §7, §8.7). The schemas of the discovery documents are
 * among them.
 * @param base the URL of the SCIM service, without a slash at its end
 */
export function schemaDocuments(base: string): ScimDocument[] {
  return SCHEMAS.map(({ id, name, description, attributes }) => ({
    schemas: [SCHEMA_URN],
    id,
    name,
    description,
    attributes: attributes.map(attributeDocument),
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${id}` },
  }));
}

/** Lists the resources of `/ResourceTypes` (RFC 7643 §6). */
export function resourceTypeDocuments(base: string): ScimDocument[] {
  return [USER_SCHEMA, GROUP_SCHEMA].map(({ name, description, endpoint, core, extensions }) => ({
    schemas: [RESOURCE_TYPE_URN],
    id: name,
    name,
    description,
    endpoint,
    schema: core.id,
    schemaExtensions: extensions.map(({ id }) => ({ schema: id, required: false })),
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
  }));
}
