import { DomainError } from '#platform/errors/domain-error.js';
import { NOW } from '../signed-inputs.js';

/** What the sign-in expects, to which the response of `test/vectors/fuzzing` is the answer. */
export const EXPECTED = {
  issuer: 'https://idp.example.com',
  audience: 'https://svc.example.com/saml/metadata',
  acsUrl: 'https://svc.example.com/saml/acs',
  requestId: '_request',
  now: NOW.getTime(),
};

/** Words of SAML. */
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

/** A tag, or the text between two tags; the attributes of a tag are parts of their own. */
export const MARKUP = /"[^"]*"|<\/?[\w:]+|\/?>|[^"<>]+|[^]/g;

/** Returns true for an error that the reader of SAML documents. */
export function isSignInError(error: unknown): boolean {
  const codes: readonly string[] = ['sign_in_failed', 'sign_in_refused'];
  return error instanceof DomainError && codes.includes(error.code);
}
