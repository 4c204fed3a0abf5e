import { createPublicKey, X509Certificate } from 'node:crypto';
import {
  parseAssertion,
  readAssertion,
  type AssertedSubject,
} from '#domain/providers/saml/assertion.js';
import { assertEnvelope, parseSamlResponse } from '#domain/providers/saml/saml-response.js';
import { verifiedBytes } from '#domain/providers/saml/signed-assertion.js';
import { wordsBy } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { INPUTS } from '../signed-inputs.js';
import { EXPECTED, isSignInError, MARKUP, SAML_WORDS } from './expectations.js';

const KEYS = [
  createPublicKey(
    new X509Certificate(INPUTS.saml.publicKey).publicKey.export({ type: 'spki', format: 'pem' }),
  ),
];
const GENUINE = described(subjectOf(Buffer.from(INPUTS.saml.response)));

export const target: FuzzTarget = {
  parser: 'parseSamlResponse, verifiedBytes, readAssertion',
  seeds: [Buffer.from(INPUTS.saml.response)],
  dictionary: SAML_WORDS,
  structure: wordsBy(MARKUP),
  longest: 16_384,
  run(input) {
    attempt(() => parseSamlResponse(input.toString('latin1')), isSignInError);
    const subject = attempt(() => subjectOf(input), isSignInError);
    if (!subject) return false;
    rule(described(subject) === GENUINE, 'a user is signed in whom the provider did not name');
    return true;
  },
};

/** Verifies a response as the sign-in does, and returns its subject. */
function subjectOf(xml: Buffer): AssertedSubject {
  const response = parseSamlResponse(xml.toString('base64'));
  assertEnvelope(response, EXPECTED);
  const bytes = verifiedBytes(response.document, response.assertion, KEYS);
  return readAssertion(parseAssertion(bytes), EXPECTED);
}

function described({ nameId, format, attributes }: AssertedSubject): string {
  return JSON.stringify([nameId, format, [...attributes]]);
}
