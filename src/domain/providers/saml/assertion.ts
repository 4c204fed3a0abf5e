import { DomainError } from '#platform/errors/domain-error.js';
import { isSingleLine } from '#platform/text/single-line.js';
import { failed } from './saml-response.js';
import {
  attributeOf,
  childrenOf,
  exactTextOf,
  instantOf,
  isElement,
  parseXml,
  textOf,
  type XmlElement,
} from './xml-document.js';

/** The values that a SAML assertion must match (SAML Profiles §4.1.4.3). */
export interface AssertionExpectations {
  /** The entity id of the provider that must have issued the assertion. */
  readonly issuer: string;
  /** The entity id of this service, for which the assertion must be issued. */
  readonly audience: string;
  readonly acsUrl: string;
  /** The id of the authentication request that the assertion must answer. */
  readonly requestId: string;
  /** The time of the check, in milliseconds since 1970. */
  readonly now: number;
}

/** The facts that an accepted assertion states about the user. */
export interface AssertedSubject {
  /** The NameID: the identifier by which the provider names the user. */
  readonly nameId: string;
  readonly format: 'persistent' | 'emailAddress';
  /** The values of each attribute by its name. A value is undefined if it is not plain text. */
  readonly attributes: ReadonlyMap<string, readonly (string | undefined)[]>;
}

/** The milliseconds by which the clock of a provider may differ from the clock of this service. */
const SKEW = 300_000;
const LIMITS = { depth: 32, elements: 1000, comments: false };
const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';
const FORMATS: Readonly<Record<string, AssertedSubject['format']>> = {
  'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent': 'persistent',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress': 'emailAddress',
};
const LONGEST_NAME_ID = 256; // in characters (SAML Core §8.3.7)
/**
 * The conditions in an assertion that this service understands. If an assertion has another
 * condition, it is invalid (SAML Core §2.5.1).
 */
const CONDITIONS = new Set(['AudienceRestriction', 'OneTimeUse', 'ProxyRestriction']);

/**
 * Parses an assertion from its bytes in canonical form, which a signature covers.
 *
 * @throws DomainError sign_in_failed if the bytes are no SAML 2.0 assertion
 */
export function parseAssertion(bytes: string): XmlElement {
  const assertion = parseXml(bytes, LIMITS);
  const isWhole =
    isElement(assertion, 'assertion', 'Assertion') && attributeOf(assertion, 'Version') === '2.0';
  if (!isWhole) throw failed('Its signature covers no SAML 2.0 assertion.');
  return assertion;
}

/**
 * Checks a verified assertion and reads its subject.
 *
 * @throws DomainError sign_in_failed, or sign_in_refused if the provider must be configured
 *   differently
 */
export function readAssertion(
  assertion: XmlElement,
  expected: AssertionExpectations,
): AssertedSubject {
  if (textOf(one(assertion, 'Issuer')) !== expected.issuer) {
    throw failed('Its assertion names another issuer.');
  }
  const issued = instantOf(attributeOf(assertion, 'IssueInstant'));
  if (issued === undefined || issued > expected.now + SKEW) {
    throw failed('Its assertion was issued in the future. Its clock may be wrong.');
  }
  checkConditions(one(assertion, 'Conditions'), expected);
  checkAuthnStatements(childrenOf(assertion, 'assertion', 'AuthnStatement'), expected.now);
  const subject = one(assertion, 'Subject');
  checkConfirmation(one(subject, 'SubjectConfirmation'), expected);
  return { ...readNameId(one(subject, 'NameID'), expected), attributes: attributesOf(assertion) };
}

/**
 * Returns the only child element of a name.
 *
 * @throws DomainError sign_in_failed if there is none, or more than one
 */
function one(parent: XmlElement, name: string): XmlElement {
  const [child, ...others] = childrenOf(parent, 'assertion', name);
  if (child && others.length === 0) return child;
  throw failed(`Its assertion has ${child ? 'more than one' : 'no'} ${name}.`);
}

function checkConditions(conditions: XmlElement, { audience, now }: AssertionExpectations): void {
  checkTimes(conditions, now);
  const all = childrenOf(conditions);
  if (!all.every(({ localName }) => CONDITIONS.has(localName)))
    throw failed('Its assertion has an unknown condition.');
  const restrictions = childrenOf(conditions, 'assertion', 'AudienceRestriction');
  const allows = (restriction: XmlElement) =>
    childrenOf(restriction, 'assertion', 'Audience').some((named) => textOf(named) === audience);
  if (restrictions.length === 0 || !restrictions.every(allows)) {
    throw failed(
      'Its assertion is meant for another service. Its administrator must check the audience (the entity id of this service).',
    );
  }
}

/**
 * Checks the times NotBefore and NotOnOrAfter of an element, if it has them.
 *
 * @throws DomainError sign_in_failed
 */
function checkTimes(element: XmlElement, now: number): void {
  const [notBefore, notOnOrAfter] = ['NotBefore', 'NotOnOrAfter'].map((name) => {
    const text = attributeOf(element, name);
    const time = instantOf(text);
    if (text !== undefined && time === undefined)
      throw failed('Its assertion has a malformed time.');
    return time;
  });
  if (notBefore !== undefined && notBefore > now + SKEW) {
    throw failed('Its assertion is not valid yet. Its clock may be wrong.');
  }
  if (notOnOrAfter !== undefined && notOnOrAfter + SKEW <= now) {
    throw failed('Its assertion has expired. Start again.');
  }
}

function checkAuthnStatements(statements: readonly XmlElement[], now: number): void {
  if (statements.length === 0)
    throw failed('Its assertion does not say that you were authenticated.');
  for (const statement of statements) {
    const text = attributeOf(statement, 'SessionNotOnOrAfter');
    if (text === undefined) continue;
    const end = instantOf(text);
    if (end === undefined) throw failed('Its assertion has a malformed time.');
    if (end + SKEW <= now) throw failed('Your session there has ended. Start again.');
  }
}

function checkConfirmation(
  confirmation: XmlElement,
  { acsUrl, requestId, now }: AssertionExpectations,
): void {
  if (attributeOf(confirmation, 'Method') !== BEARER) {
    throw failed('Its assertion is not confirmed for a browser.');
  }
  const data = one(confirmation, 'SubjectConfirmationData');
  if (attributeOf(data, 'Recipient') !== acsUrl) {
    throw failed(
      'Its assertion is meant for another recipient. Its administrator must check the URL of the assertion consumer service.',
    );
  }
  if (attributeOf(data, 'NotOnOrAfter') === undefined) throw failed('Its assertion never expires.');
  checkTimes(data, now);
  if (attributeOf(data, 'InResponseTo') !== requestId) {
    throw failed('Its assertion answers another request.');
  }
}

function readNameId(
  nameId: XmlElement,
  { issuer, audience }: AssertionExpectations,
): Pick<AssertedSubject, 'nameId' | 'format'> {
  const stated = attributeOf(nameId, 'Format') ?? '';
  const format = Object.hasOwn(FORMATS, stated) ? FORMATS[stated] : undefined;
  if (!format) {
    throw refused(
      'The identity provider sent a NameID of a format that names no lasting account. Its administrator must set the format of ' +
        'the NameID to persistent or emailAddress.',
    );
  }
  // A persistent name is compared exactly (SAML Core §1.3.1). Without the white space around them,
  // two names could become one.
  const value = (format === 'persistent' ? exactTextOf(nameId) : textOf(nameId)) ?? '';
  if (value === '' || value.length > LONGEST_NAME_ID || !isSingleLine(value)) {
    throw failed('Its assertion has a malformed NameID.');
  }
  // A NameID that has qualifiers is unique only within them. So a NameID is accepted only if its
  // qualifiers name this provider and this service.
  const [by = issuer, forService = audience] = ['NameQualifier', 'SPNameQualifier'].map((name) =>
    attributeOf(nameId, name),
  );
  if (by !== issuer || forService !== audience) {
    throw refused(
      'The identity provider sent a NameID of another provider or for another service. Its administrator must check the ' +
        'qualifiers of the NameID (NameQualifier, SPNameQualifier).',
    );
  }
  return { nameId: value, format };
}

function attributesOf(assertion: XmlElement): AssertedSubject['attributes'] {
  const values = new Map<string, (string | undefined)[]>();
  const attributes = childrenOf(assertion, 'assertion', 'AttributeStatement').flatMap((statement) =>
    childrenOf(statement, 'assertion', 'Attribute'),
  );
  for (const attribute of attributes) {
    const name = attributeOf(attribute, 'Name') ?? '';
    const own = childrenOf(attribute, 'assertion', 'AttributeValue').map(textOf);
    values.set(name, [...(values.get(name) ?? []), ...own]);
  }
  return values;
}

/**
 * Returns the error for a signed assertion whose content this service does not accept. Another try
 * does not help, because the provider must first be configured differently.
 *
 * @param detail says what is wrong
 */
export function refused(detail: string): DomainError {
  return new DomainError('sign_in_refused', detail);
}
