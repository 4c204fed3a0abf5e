import { ScimError } from '../errors/scim-error.js';
import { checkNew, type RefusedPart, type Refuse } from '../schema/refused-part.js';
import { isStorableValue } from '../schema/literal.js';
import { hasParts, withParts } from '../schema/attribute-value.js';
import { isComplex, rootPath, type Draft } from '../schema/draft.js';
import { findAttribute, USER_SCHEMA } from '../schema/schemas.js';
import { draftOf, userOf, type StoredUser, type UserAttributes } from '../schema/stored-user.js';
import { finished, namesAddress, type WrittenUser } from '../schema/written-user.js';
import { draftFrom, givenIn, missing } from './given-attributes.js';

/**
 * Parses the body of a POST of a user. Unknown and read-only attributes, `schemas` and `password`
 * are ignored.
 * @throws ScimError `invalidSyntax` if a required attribute is missing, `invalidValue` if one
 *   is wrong
 */
export function readUser(body: unknown): UserAttributes {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const given = givenIn(body, { resource: USER_SCHEMA, critical: 'active', isNew: true, refuse });
  const draft = draftFrom(given, refuse);
  checkNew(refused, draft.has('active'));
  const userName = draft.get('userName');
  if (typeof userName !== 'string' || userName.trim() === '') throw missing('userName');
  return userOf(draft);
}

/**
 * Parses the body of a PUT of a user. A PUT without `userName` or `active` keeps the values of
 * `current`, so that an update of a profile never reactivates a user. If other parts of a PUT with
 * `active: false` cannot be applied, their present values remain, and the PUT is not refused.
 *
 * @param taken the error of an earlier attempt to write this PUT; undefined at the first attempt.
 *   It failed because another user has the same `userName`
 * @throws ScimError `invalidSyntax` for a body that is no object, `invalidValue` if an attribute is
 *   wrong
 */
export function readReplacement(
  body: unknown,
  current: StoredUser,
  taken?: ScimError,
): WrittenUser {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const given = givenIn(body, { resource: USER_SCHEMA, critical: 'active', refuse });
  if (taken && given.delete('userName')) {
    refuse({ kind: 'fault', name: 'userName', error: taken });
  }
  const draft = draftFrom(given, refuse);
  const userName = draft.get('userName');
  if (typeof userName === 'string' && userName.trim() === '') {
    draft.delete('userName');
    refuse({ kind: 'fault', name: 'userName', error: missing('userName') });
  }
  const said = draft.get('active');
  const before = draftOf(current);
  // The userName, active, and attributes that cannot be applied keep their present values if the
  // PUT does not set them.
  for (const name of ['userName', 'active', ...refused.map((part) => part.name)]) {
    keepFormer(draft, before, name);
  }
  const named = [...given.values()].filter(
    ({ target }) => namesAddress(target) && !refused.some(({ name }) => name === target.path),
  );
  const written = { draft, named: named.map(({ raw }) => raw), refused };
  const understood = {
    hasCritical: said !== undefined,
    endsAccess: said === false,
    operations: 1,
    isStorable: isStorableValue(body),
  };
  return finished(written, current, understood);
}

/**
 * Gives an attribute the value that it had before, as far as the draft sets no other one. Each
 * sub-attribute of a complex attribute is kept separately. A name such as `name.givenName` keeps
 * one part only.
 */
function keepFormer(draft: Draft, before: Draft, name: string): void {
  const target = findAttribute(USER_SCHEMA, name);
  if (!target) return;
  const path = rootPath(target);
  const [former, given] = [before.get(path), draft.get(path)];
  if (isComplex(former) && (given === undefined || isComplex(given))) {
    const kept = Object.entries(former).filter(([sub]) => !target.sub || sub === target.sub.name);
    const value = Object.assign(withParts(undefined, []), Object.fromEntries(kept), given);
    if (hasParts(value)) draft.set(path, value);
  } else if (former !== undefined && given === undefined) draft.set(path, former);
}
