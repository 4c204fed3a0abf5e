import { isDeepStrictEqual } from 'node:util';
import { GROUP_SCHEMA, parsePath, USER_SCHEMA } from '@svc/scim-language';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { elementFilterText } from '../../readers/filter-text.js';
import { isScimError, TOKENS, WORDS } from './language.js';

export const target: FuzzTarget = {
  parser: 'parsePath',
  seeds: [
    'emails[type eq "work"].value',
    'members[value eq "2819c223"]',
    'name.familyName',
    'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User',
    'urn:ietf:params:scim:schemas:core:2.0:User:emails[primary eq true]',
    'badges[x y z].value',
    'emails[type eq "of emails.value"]',
  ].map((text) => Buffer.from(text)),
  dictionary: WORDS,
  structure: wordsBy(TOKENS),
  longest: 2048,
  run(input) {
    const text = input.toString();
    const parse = (path: string) => attempt(() => parsePath(path, USER_SCHEMA), isScimError);
    attempt(() => parsePath(text, GROUP_SCHEMA), isScimError);
    const path = parse(text);
    if (path?.kind !== 'attribute') return path !== undefined;
    const { target: of, filter } = path;
    const urn = of.extension === undefined ? '' : `${of.extension}:`;
    const brackets = filter ? `[${elementFilterText(filter)}]` : '';
    const sub = of.sub ? `.${of.sub.name}` : '';
    const again = parse(`${urn}${of.attribute.name}${brackets}${sub}`);
    if (again) rule(isDeepStrictEqual(again, path), 'a written path is read as another path');
    return true;
  },
};
