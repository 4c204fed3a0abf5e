import * as language from '@svc/scim-language';
import { ScimError, type ScimErrorType, type StoredUser } from '@svc/scim-language';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';

// The exports of the package `scim-language` for this server. Functions that throw are wrapped
// below, so that they throw a DomainError.
export {
  ENTERPRISE_ATTRIBUTES,
  ENTERPRISE_URN,
  findAttribute,
  findSchema,
  GROUP_ATTRIBUTES,
  GROUP_SCHEMA,
  GROUP_URN,
  isObject,
  isStorable,
  isStorableValue,
  merged,
  namesVersion,
  notStorable,
  project,
  referenceTo,
  RESOURCE_SIZE,
  resourceTypeDocuments,
  schemaDocuments,
  SERVICE_PROVIDER_CONFIG_URN,
  USER_ATTRIBUTES,
  USER_SCHEMA,
  USER_URN,
  versionTag,
  type Attribute,
  type AttributeReference,
  type Filter,
  type GroupPatch,
  type Literal,
  type Operator,
  type Projection,
  type RefusedPart,
  type ReplacedGroup,
  type ResourceSchema,
  type ScimDocument,
  type StoredUser,
  type UserAttributes,
  type WrittenUser,
} from '@svc/scim-language';

/** The error code of this server for each type of SCIM error. */
const CODES: Readonly<Record<ScimErrorType, ErrorCode>> = {
  invalidFilter: 'invalid_filter',
  invalidPath: 'invalid_path',
  invalidSyntax: 'invalid_request',
  invalidValue: 'invalid_value',
  mutability: 'mutability',
  noTarget: 'no_target',
  tooMany: 'too_many',
  uniqueness: 'uniqueness',
};

/**
 * Converts an error of the package `scim-language` to an error of this server. If the package only
 * passed on an error of this server, which {@link scimErrorOf} has wrapped, that error is returned.
 */
export function domainErrorOf(error: ScimError): DomainError {
  const { cause } = error;
  return cause instanceof DomainError
    ? cause
    : new DomainError(CODES[error.scimType], error.detail);
}

/**
 * Wraps the error of an earlier attempt at a write, so that the package `scim-language` accepts the
 * error. That attempt failed because another resource has the same name. Returns undefined if there
 * was no such attempt.
 */
function scimErrorOf(taken: DomainError | undefined): ScimError | undefined {
  return taken && new ScimError('uniqueness', taken.detail, { cause: taken });
}

/** Makes a function of the package `scim-language` throw a {@link DomainError}. */
function translated<Given extends readonly unknown[], Result>(
  read: (...given: Given) => Result,
): (...given: Given) => Result {
  return (...given) => {
    try {
      return read(...given);
    } catch (error) {
      throw error instanceof ScimError ? domainErrorOf(error) : error;
    }
  };
}

export const readUser = translated(language.readUser);
export const readStored = translated(language.readStored);
export const readGroup = translated(language.readGroup);
export const readOperations = translated(language.readOperations);
export const parseFilter = translated(language.parseFilter);
export const parseProjection = translated(language.parseProjection);

/**
 * Parses the body of a PUT of a user.
 *
 * @param taken the error of an earlier attempt at this PUT, which failed because another user has
 *   the same name
 */
export const readReplacement = translated(
  (body: unknown, current: StoredUser, taken?: DomainError) =>
    language.readReplacement(body, current, scimErrorOf(taken)),
);

/**
 * Applies a PATCH to a user.
 *
 * @param taken the error of an earlier attempt at this PATCH, which failed because another user has
 *   the same name
 */
export const patchUser = translated(
  (current: StoredUser, operations: readonly language.PatchOperation[], taken?: DomainError) =>
    language.patchUser(current, operations, scimErrorOf(taken)),
);

/**
 * Parses the body of a PUT of a group.
 *
 * @param taken the error of an earlier attempt at this PUT, which failed because another group has
 *   the same name
 */
export const readGroupReplacement = translated((body: unknown, taken?: DomainError) =>
  language.readGroupReplacement(body, scimErrorOf(taken)),
);

/**
 * Converts a PATCH of a group to changes.
 *
 * @param taken the error of an earlier attempt at this PATCH, which failed because another group
 *   has the same name
 */
export const patchGroup = translated(
  (operations: readonly language.PatchOperation[], taken?: DomainError) =>
    language.patchGroup(operations, scimErrorOf(taken)),
);
