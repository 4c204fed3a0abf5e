import { parseAssertion, readAssertion } from '#domain/providers/saml/assertion.js';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS } from '../signed-inputs.js';
import { EXPECTED, isSignInError, MARKUP, SAML_WORDS } from './expectations.js';

const NS = 'xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"';
const ASSERTION = (/<saml:Assertion[^]*<\/saml:Assertion>/.exec(INPUTS.saml.response)?.[0] ?? '')
  .replace(/<ds:Signature[^]*<\/ds:Signature>/, '')
  .replace('<saml:Assertion ', `<saml:Assertion ${NS} `);

export const target: FuzzTarget = {
  parser: 'parseAssertion, readAssertion',
  seeds: [Buffer.from(ASSERTION)],
  dictionary: SAML_WORDS,
  structure: wordsBy(MARKUP),
  longest: 16_384,
  run(input) {
    const read = () => readAssertion(parseAssertion(input.toString()), EXPECTED);
    const subject = attempt(read, isSignInError);
    if (!subject) return false;
    const { nameId, format } = subject;
    rule(['persistent', 'emailAddress'].includes(format), 'a NameID of another format');
    rule(nameId !== '' && nameId.length <= 256, 'a NameID of another length');
    const text = input.toString();
    for (const part of [EXPECTED.issuer, EXPECTED.audience, EXPECTED.acsUrl, EXPECTED.requestId]) {
      // An entity (`&…;`) can stand for any character. So the text of an assertion with an entity
      // is not searched for the value.
      rule(text.includes('&') || text.includes(part), 'an expected value is not in the assertion');
    }
    return true;
  },
};
