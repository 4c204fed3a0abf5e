import { DomainError } from '#platform/errors/domain-error.js';
import { NOW } from '../signed-inputs.js';

/**
 * The values that the sign-in of the tests expects. The response in `test/vectors/fuzzing` has all
 * of them.
 */
export const EXPECTED = {
  issuer: 'https://idp.example.com',
  audience: 'https://svc.example.com/saml/metadata',
  acsUrl: 'https://svc.example.com/saml/acs',
  requestId: '_request',
  now: NOW.getTime(),
};

/** Words of SAML documents, which mutants contain often. */
export const SAML_WORDS = [
  'ID="',
  'InResponseTo="_request"',
  'Version="2.0"',
  'Format="',
  'NameQualifier="',
  '<saml:Assertion ',
  '</saml:Assertion>',
  '<saml:NameID>',
  '<saml:Subject>',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '<!DOCTYPE x>',
  '<?x?>',
  '&amp;',
  '&#x41;',
  '&#0;',
  '&x;',
  'xmlns="',
  'xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"',
  'urn:oasis:names:tc:SAML:2.0:protocol',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  '<ds:Signature>',
  '_assertion',
  'http://www.w3.org/2000/09/xmldsig#',
  'admin@example.com',
  'NotOnOrAfter="',
  '2046-01-01T00:00:00Z',
];

/** Matches one part of XML: an attribute's value, the beginning or end of a tag, or text. */
export const MARKUP = /"[^"]*"|<\/?[\w:]+|\/?>|[^"<>]+|[^]/g;

/**
 * Returns true for an error that the SAML reader of the service declares for documents that it
 * refuses.
 */
export function isSignInError(error: unknown): boolean {
  const codes: readonly string[] = ['sign_in_failed', 'sign_in_refused'];
  return error instanceof DomainError && codes.includes(error.code);
}
