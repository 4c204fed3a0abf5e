export { readGroup, readGroupReplacement } from './body/read-group.js';
export type { GroupAttributes, ReplacedGroup } from './body/read-group.js';
export { readReplacement, readUser } from './body/read-user.js';
export { ScimError, type ScimErrorType } from './errors/scim-error.js';
export { meets } from './filter/element-match.js';
export type { Filter } from './filter/filter.js';
export { merged } from './filter/filter-merging.js';
export { parseFilter, parsePath, type PatchPath } from './filter/filter-parser.js';
export { patchGroup, type GroupPatch, type MemberChange } from './patch/patch-group.js';
export { readOperations, type PatchOperation } from './patch/patch-operations.js';
export { patchUser } from './patch/patch-user.js';
export {
  resourceTypeDocuments,
  schemaDocuments,
  type ScimDocument,
} from './response/discovery-documents.js';
export {
  parseProjection,
  project,
  type Projection,
  type ProjectionQuery,
} from './response/projection.js';
export { namesVersion, versionTag } from './response/versions.js';
export { isObject } from './schema/attribute-value.js';
export type { AttributeValue, ComplexValue, SimpleValue } from './schema/attribute-value.js';
export type { Attribute, AttributeType } from './schema/attributes/attribute.js';
export {
  ENTERPRISE_ATTRIBUTES,
  GROUP_ATTRIBUTES,
  USER_ATTRIBUTES,
} from './schema/attributes/user-and-group-attributes.js';
export { isStorable, isStorableValue, type Literal, type Operator } from './schema/literal.js';
export { RESOURCE_SIZE } from './schema/resource-size.js';
export { notStorable, type RefusedKind, type RefusedPart } from './schema/refused-part.js';
export {
  attributesOf,
  ENTERPRISE_URN,
  findAttribute,
  findSchema,
  GROUP_SCHEMA,
  GROUP_URN,
  referenceTo,
  RESOURCE_TYPE_URN,
  SCHEMA_URN,
  SCHEMAS,
  SERVICE_PROVIDER_CONFIG_URN,
  subAttribute,
  USER_SCHEMA,
  USER_URN,
  type AttributeReference,
  type ResourceSchema,
  type Schema,
} from './schema/schemas.js';
export {
  readStored,
  type StoredAttributes,
  type StoredUser,
  type UserAttributes,
} from './schema/stored-user.js';
export type { WrittenUser } from './schema/written-user.js';
