import { domainOfEmail, parseEmailAddress } from '#domain/organizations/email-address.js';
import { organizationDomain } from '#domain/organizations/organization-domain.js';
import { refused, type AssertedSubject } from './saml/assertion.js';
import type { SamlProviderConfig } from '#platform/config/config.js';
import { providerVariable } from '#platform/config/provider-settings.js';
import { asciiLowerCase, toSingleLine } from '#platform/text/single-line.js';
import type { UpstreamIdentity } from './upstream-identity.js';

const NAME_LIMIT = 200; // in characters
const NAMES = [
  'displayName',
  'urn:oid:2.16.840.1.113730.3.1.241',
  'http://schemas.microsoft.com/identity/claims/displayname',
];

/**
 * Reads the identity of a user from the subject of a SAML assertion that was accepted.
 *
 * @param issuer the entity id of the provider
 * @throws DomainError sign_in_refused, naming the attribute or setting that the provider must
 *   change
 */
export function identityOf(
  subject: AssertedSubject,
  settings: SamlProviderConfig,
  issuer: string,
): UpstreamIdentity {
  const email = emailOf(subject, settings);
  const domain = domainOfEmail(email);
  checkDomain(subject, settings, domain);
  return {
    provider: settings.slug,
    issuer,
    // The case of letters in an e-mail address does not matter, but a persistent id is compared
    // exactly.
    subject: subject.format === 'emailAddress' ? asciiLowerCase(subject.nameId) : subject.nameId,
    tenant: '',
    email,
    name: nameOf(subject),
    organizationDomain: organizationDomain(domain),
  };
}

function emailOf(subject: AssertedSubject, { slug, emailAttribute }: SamlProviderConfig): string {
  if (emailAttribute === undefined && subject.format !== 'emailAddress') {
    const variable = providerVariable(slug, 'EMAIL_ATTRIBUTE');
    throw refused(
      'The identity provider sent no e-mail address. Its administrator must set the format of the NameID to emailAddress, or ' +
        `the operator of this service must name the attribute with the address in ${variable}.`,
    );
  }
  const text = emailAttribute === undefined ? subject.nameId : onlyValue(subject, emailAttribute);
  const address = parseEmailAddress(text);
  if (address) return address;
  throw refused('The identity provider sent an e-mail address that is malformed.');
}

/**
 * Refuses an e-mail address that is not in the domain that the configured attribute states. Without
 * this check, the attribute could claim another domain for the user.
 */
function checkDomain(
  subject: AssertedSubject,
  { domainAttribute }: SamlProviderConfig,
  domain: string,
): void {
  if (domainAttribute === undefined) return;
  if (asciiLowerCase(onlyValue(subject, domainAttribute)) === domain) return;
  throw refused(
    'The identity provider names a domain of your organization that is not the domain of your e-mail address.',
  );
}

/**
 * Returns the value of an attribute that must have exactly one.
 *
 * @throws DomainError sign_in_refused naming the attribute
 */
function onlyValue({ attributes }: AssertedSubject, name: string): string {
  const [value, ...others] = attributes.get(name) ?? [];
  if (value !== undefined && value !== '' && others.length === 0) return value;
  const fault = others.length > 0 ? 'more than one value for' : 'no value for';
  throw refused(
    `The identity provider sent ${fault} the attribute ${name}. Its administrator must send exactly one.`,
  );
}

function nameOf({ attributes }: AssertedSubject): string | null {
  const values = NAMES.flatMap((name) => attributes.get(name)?.[0] ?? []);
  return toSingleLine(values[0] ?? '', NAME_LIMIT);
}
