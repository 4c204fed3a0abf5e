import { DomainError } from '#platform/errors/domain-error.js';
import {
  attributeOf,
  childrenOf,
  elementsIn,
  isElement,
  parseXml,
  textOf,
  type XmlElement,
} from './xml-document.js';

/**
 * A SAML response that has the expected structure. Nothing in it is verified. So its content may
 * only be used to select the keys that verify it, or to refuse it.
 */
export interface SamlResponse {
  /** The XML text of the response, which the signature check needs. */
  readonly document: string;
  readonly response: XmlElement;
  readonly assertion: XmlElement;
  /** The id of the request that the response claims to answer. */
  readonly inResponseTo: string;
}

/** The values that the SAML response, which contains the assertion, must match. */
export interface ExpectedEnvelope {
  readonly acsUrl: string;
  readonly issuer: string;
  readonly requestId: string;
}

const LIMITS = { depth: 32, elements: 1000, comments: false };
const BASE64 = /^[A-Za-z\d+/]+={0,2}$/;
const SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success';
const ENCRYPTED = new Set([
  'EncryptedAssertion',
  'EncryptedID',
  'EncryptedAttribute',
  'EncryptedData',
]);
const CHILDREN = new Set(['Issuer', 'Signature', 'Extensions', 'Status', 'Assertion']);

/** The error texts for the second-level status codes that providers send (SAML Core §3.2.2.2). */
const STATUS_TEXTS: Readonly<Record<string, string>> = {
  AuthnFailed: 'It could not authenticate you.',
  RequestDenied: 'Access was denied there.',
  InvalidNameIDPolicy:
    'Its administrator must set the format of the NameID to persistent or emailAddress.',
};

/**
 * Parses the posted response (SAML Bindings §3.5.4) and checks its structure. It must have one
 * unencrypted assertion, which is a child of the response. No signature may be at an unexpected
 * position, and no id may occur twice.
 *
 * @param encoded the field SAMLResponse of the form
 * @throws DomainError sign_in_failed
 */
export function parseSamlResponse(encoded: string): SamlResponse {
  const document = decode(encoded);
  const response = parseXml(document, LIMITS);
  if (!isElement(response, 'protocol', 'Response') || attributeOf(response, 'Version') !== '2.0') {
    throw failed('It sent no SAML 2.0 response.');
  }
  const elements = elementsIn(response);
  if (elements.some(({ localName }) => ENCRYPTED.has(localName))) {
    throw failed(
      'It encrypts assertions, which this service cannot read. Its administrator must switch off the encryption of assertions ' +
        '(often named "Assertion Encryption", "Encrypt Assertions" or "assertion.encryption").',
    );
  }
  assertSuccess(response);
  const assertion = onlyAssertion(response, elements);
  assertOnePlace(response, assertion, elements);
  return { document, response, assertion, inResponseTo: requestIdOf(response, assertion) };
}

/**
 * Compares the values of the response outside its assertion with the expected values. These values
 * may be unsigned, so they can only be a reason to refuse.
 *
 * @throws DomainError sign_in_failed
 */
export function assertEnvelope({ response }: SamlResponse, expected: ExpectedEnvelope): void {
  const destination = attributeOf(response, 'Destination');
  if (destination !== undefined && destination !== expected.acsUrl) {
    throw failed('Its response is meant for another URL.');
  }
  const inResponseTo = attributeOf(response, 'InResponseTo');
  if (inResponseTo !== undefined && inResponseTo !== expected.requestId) {
    throw failed('Its response answers two requests.');
  }
  const [issuer] = childrenOf(response, 'assertion', 'Issuer');
  if (issuer && textOf(issuer) !== expected.issuer) {
    throw failed('Its response names another provider.');
  }
}

function decode(encoded: string): string {
  const base64 = encoded.replaceAll(/[\r\n\t ]/g, '');
  if (!BASE64.test(base64)) throw failed('Its response is malformed.');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(base64, 'base64'));
  } catch {
    throw failed('Its response is not UTF-8.');
  }
}

function assertSuccess(response: XmlElement): void {
  const [status, ...others] = childrenOf(response, 'protocol', 'Status');
  const [code] = status ? childrenOf(status, 'protocol', 'StatusCode') : [];
  if (!code || others.length > 0) throw failed('Its response has no status.');
  if (attributeOf(code, 'Value') === SUCCESS) return;
  const [second] = childrenOf(code, 'protocol', 'StatusCode');
  const name = (second && attributeOf(second, 'Value')?.split(':').at(-1)) ?? '';
  throw failed(
    Object.hasOwn(STATUS_TEXTS, name) ? (STATUS_TEXTS[name] ?? '') : 'It answered with an error.',
  );
}

function onlyAssertion(response: XmlElement, elements: readonly XmlElement[]): XmlElement {
  const assertions = elements.filter(({ localName }) => localName === 'Assertion');
  const [assertion] = assertions;
  if (!assertion) throw failed('Its response has no assertion.');
  if (assertions.length > 1) throw failed('Its response has more than one assertion.');
  const isChild = childrenOf(response, 'assertion', 'Assertion').includes(assertion);
  if (!isChild) throw failed('Its assertion is not at its place.');
  return assertion;
}

/**
 * Refuses a response that contains further elements or ids. An attacker could otherwise have one
 * element verified and another one read (signature wrapping).
 *
 * @throws DomainError sign_in_failed
 */
function assertOnePlace(
  response: XmlElement,
  assertion: XmlElement,
  elements: readonly XmlElement[],
): void {
  const names = childrenOf(response).map(({ localName }) => localName);
  if (!names.every((name) => CHILDREN.has(name)) || new Set(names).size !== names.length) {
    throw failed('Its response has elements that do not belong there.');
  }
  const signatures = elements.filter(({ localName }) => localName === 'Signature');
  const places = new Set([...childrenOf(response), ...childrenOf(assertion)]);
  if (!signatures.every((signature) => places.has(signature))) {
    throw failed('Its response has a signature that is not at its place.');
  }
  const ids = elements.flatMap(({ attributes }) =>
    Array.from(attributes)
      .filter(({ localName }) => localName.toLowerCase() === 'id')
      .map(({ value }) => value),
  );
  if (new Set(ids).size !== ids.length) throw failed('Its response uses an ID twice.');
}

/**
 * Reads the id of the request that the response answers. It is read from the assertion, because the
 * attribute of the response is optional.
 */
function requestIdOf(response: XmlElement, assertion: XmlElement): string {
  const ids = elementsIn(assertion)
    .filter((element) => isElement(element, 'assertion', 'SubjectConfirmationData'))
    .map((element) => attributeOf(element, 'InResponseTo'));
  const id = ids[0] ?? attributeOf(response, 'InResponseTo');
  if (id !== undefined) return id;
  throw failed('It answers no request of this service. Start the sign-in on the login page.');
}

/** Returns the error for a SAML response that is not accepted. */
export function failed(what: string): DomainError {
  return new DomainError('sign_in_failed', `The identity provider did not sign you in. ${what}`);
}
