import { isDeepStrictEqual } from 'node:util';
import { GROUP_SCHEMA, merged, parseFilter, USER_SCHEMA, type Filter } from '@svc/scim-language';
import { evaluate } from '../../../support/scim-evaluator.js';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { filterText } from '../../readers/filter-text.js';
import { ADA_JSON, isScimError, TOKENS, WORDS } from './language.js';

export const target: FuzzTarget = {
  parser: 'parseFilter, merged',
  seeds: [
    'userName eq "ada@example.com"',
    'emails[type eq "work" and value co "@example.com"] or emails[type eq "home"]',
    'not (emails[type eq "work"]) and not (emails.value ew "example")',
    'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value pr and active ne false',
    'meta.lastModified gt "2026-01-15T12:00:00+01:00" and (title pr or displayName sw "A")',
    'emails[type eq "work"].value eq "ada@example.com"',
    'members[value eq "2819c223"]',
    'displayName eq "\\u00e9\\"\\\\"',
  ].map((text) => Buffer.from(text)),
  dictionary: WORDS,
  structure: wordsBy(TOKENS),
  longest: 2048,
  run(input) {
    const text = input.toString();
    const parse = (filter: string) => attempt(() => parseFilter(filter, USER_SCHEMA), isScimError);
    attempt(() => parseFilter(text, GROUP_SCHEMA, [USER_SCHEMA]), isScimError);
    const filter = parse(text);
    if (!filter) return false;
    checkWriting(filter, parse);
    const isFound = evaluate(filter, ADA_JSON);
    rule(evaluate(merged(filter), ADA_JSON) === isFound, 'merged conditions mean something else');
    return true;
  },
};

/**
 * Checks that a parsed filter, written as text and parsed again, is the same filter. It does not
 * check a text that the parser refuses.
 */
function checkWriting(filter: Filter, parse: (text: string) => Filter | undefined): void {
  const written = filterText(filter);
  const again = parse(written);
  // The parser may refuse the text, because its added parentheses nest more deeply than the parser
  // allows.
  if (again) rule(isDeepStrictEqual(again, filter), 'a written filter is read as another filter');
}
