import { ScimError } from '../errors/scim-error.js';
import { TooLarge } from './attribute-value.js';
import type { Draft } from './draft.js';
import { partsLeftOut, type RefusedPart, type Understood } from './refused-part.js';
import type { AttributeReference } from './schemas.js';
import { draftOf, userOf, type StoredUser, type UserAttributes } from './stored-user.js';

/** A user after a write, with the parts of the write that were not applied. */
export interface WrittenUser {
  readonly user: UserAttributes;
  /**
   * The values that the write gives to `userName` and `emails`. One of them may be the e-mail
   * address with which the user signs in.
   */
  readonly named: readonly unknown[];
  readonly leftOut: readonly RefusedPart[];
  /** True if the write says that the user is inactive, also if the user was inactive before. */
  readonly endsAccess: boolean;
}

/**
 * A user after a write in which all parts that can be applied were applied. Whether the write as a
 * whole is refused because of the other parts is not decided yet.
 */
interface Written {
  readonly draft: Draft;
  readonly named: readonly unknown[];
  readonly refused: readonly RefusedPart[];
}

/**
 * Completes a write: either refuses it because of its refused parts, or leaves these out. If the
 * write ends access but its result is not a valid user, only `active` is changed.
 * @throws ScimError the error of a part for which the write is refused
 */
export function finished(
  { draft, named, refused }: Written,
  current: StoredUser,
  understood: Understood,
): WrittenUser {
  const leftOut = partsLeftOut(refused, understood);
  const { endsAccess } = understood;
  try {
    return { user: userOf(draft), named, leftOut, endsAccess };
  } catch (error) {
    if (!endsAccess || !(error instanceof ScimError)) throw error;
    const user = userOf(draftOf(current).set('active', false));
    const rest: RefusedPart = { kind: 'fault', name: 'all attributes but active', error };
    return { user, named: [], leftOut: [...leftOut, rest], endsAccess };
  }
}

/**
 * Describes an attribute whose value cannot be applied. A photo that is too large is only left out:
 * no write is refused because of it.
 */
export function refusedPart({ attribute, path }: AttributeReference, error: unknown): RefusedPart {
  if (!(error instanceof ScimError)) throw error;
  const isDropped = attribute.name === 'photos' && error instanceof TooLarge;
  return { kind: isDropped ? 'dropped' : 'fault', name: path, error };
}

/**
 * Returns true if a value of the attribute may be the e-mail address with which the user signs in.
 */
export function namesAddress({ path }: AttributeReference): boolean {
  const [root] = path.split('.', 1);
  return root === 'userName' || root === 'emails';
}
