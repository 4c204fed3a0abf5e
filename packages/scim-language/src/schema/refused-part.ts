import { ScimError } from '../errors/scim-error.js';
import { invalidValue } from './attribute-value.js';
import {
  containsReferenceTo,
  isForeign,
  refersTo,
  resembles,
  type CriticalAttribute,
} from './critical-attribute.js';
import type { ResourceSchema } from './schemas.js';

/**
 * The reasons why a part of a write is not applied. (The critical attribute is `active` of a user
 * or `members` of a group.)
 *
 * - `fault`: it cannot be applied.
 * - `unclear`: it names the critical attribute in a way that is not understood.
 * - `lookalike`: it may mean the critical attribute.
 * - `unknown`: it is an operation on an unknown or read-only attribute.
 * - `foreign`: it is an operation under the URN of an unknown schema.
 * - `dropped`: it is a photo over the limit.
 */
export type RefusedKind = 'fault' | 'unclear' | 'lookalike' | 'unknown' | 'foreign' | 'dropped';

/** A part of a PATCH or PUT that is not applied: an operation, or one attribute. */
export interface RefusedPart {
  readonly kind: RefusedKind;
  /** The path or the key, as it is in the request. */
  readonly name: string;
  readonly error: ScimError;
}

/** Receives the parts of a write that are not applied. */
export type Refuse = (part: RefusedPart) => void;

/** The facts about a write that decide if it is applied without its refused parts. */
export interface Understood {
  /** True if a part that was understood sets the critical attribute (`active` or `members`). */
  readonly hasCritical: boolean;
  /** True if the write ends access: it says `active: false`, or removes members. */
  readonly endsAccess: boolean;
  /** The number of operations of a PATCH; 1 for a PUT or a POST. */
  readonly operations: number;
  /** True if the request has no characters that cannot be stored. */
  readonly isStorable: boolean;
}

/** Makes the error for a request with characters that cannot be stored. */
export function notStorable(): ScimError {
  return new ScimError(
    'invalidSyntax',
    'The body contains characters that are not text, or is nested too deeply. Remove them.',
  );
}

/**
 * Decides whether a write is applied without its refused parts. A write that ends access is always
 * applied. A faulty value in another part of the request must not keep the access of a person.
 *
 * @returns the parts that the caller reports. If the write ends access, they are all refused parts
 *   except those of unknown schemas. Otherwise they are only photos over the limit.
 * @throws ScimError the error of a part for which the write is refused
 */
export function partsLeftOut(
  refused: readonly RefusedPart[],
  { hasCritical, endsAccess, operations, isStorable }: Understood,
): readonly RefusedPart[] {
  const reported = refused.filter(({ kind }) => kind !== 'foreign');
  if (endsAccess) return reported;
  if (!isStorable) throw notStorable();
  const fault = refused.find(
    ({ kind }) => kind === 'fault' || kind === 'unclear' || (kind === 'lookalike' && !hasCritical),
  );
  if (fault) throw fault.error;
  // Each operation on an unknown attribute, a read-only one, or one of an unknown schema is one
  // part. If all operations are such parts, and one of them is `unknown`, the write is refused,
  // because it would do nothing.
  const ignored = refused.filter(({ kind }) => kind === 'unknown' || kind === 'foreign');
  const unknown = ignored.find(({ kind }) => kind === 'unknown');
  if (unknown && ignored.length === operations) throw unknown.error;
  return reported.filter(({ kind }) => kind === 'dropped');
}

/**
 * Refuses a POST because of a part that is not applied. A photo over the limit is only left out. So
 * is a part under the URN of an unknown schema that may mean the critical attribute, if the POST
 * also sets that attribute itself.
 * @throws ScimError the error of a part
 */
export function checkNew(refused: readonly RefusedPart[], hasCritical: boolean): void {
  partsLeftOut(refused, { hasCritical, endsAccess: false, operations: 1, isStorable: true });
}

/**
 * Decides whether an attribute with another name may mean the critical attribute (`active` or
 * `members`), and returns the kind of the refused part.
 *
 * @returns undefined if the name and the value have nothing to do with the critical attribute
 */
export function resemblanceOf(
  critical: CriticalAttribute,
  { name, value, isKnown }: { name: string; value: unknown; isKnown: boolean },
  resource: ResourceSchema,
): 'unclear' | 'lookalike' | undefined {
  const isOfOthers = isForeign(name, resource);
  if (refersTo(critical, name) || containsReferenceTo(critical, value)) {
    return isOfOthers ? 'lookalike' : 'unclear';
  }
  if (isKnown || isOfOthers) return undefined;
  return resembles(critical, name, value) ? 'lookalike' : undefined;
}

/**
 * Makes the error for a value that names the critical attribute, or may mean it, in a way that is
 * not understood.
 */
export function unclearValue(critical: CriticalAttribute): ScimError {
  return invalidValue(critical, 'is referenced in a way that is not understood');
}
