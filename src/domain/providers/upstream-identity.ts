import { domainOfEmail, parseEmailAddress } from '#domain/organizations/email-address.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { isSingleLine, toSingleLine } from '#platform/text/single-line.js';
import { isMicrosoftIssuer } from './openid/microsoft-issuer.js';
import { GOOGLE_ISSUER } from './tenancy.js';
import { organizationDomain } from '#domain/organizations/organization-domain.js';

/**
 * The facts about a user that an identity provider has confirmed. They have the same form for
 * OpenID Connect and SAML.
 */
export interface UpstreamIdentity {
  /** The short name (slug) of the provider in the configuration. */
  readonly provider: string;
  readonly issuer: string;
  readonly subject: string;
  /** The tenant, if the issuer serves many: Microsoft's `tid` or Google's `hd`; otherwise ''. */
  readonly tenant: string;
  /**
   * The e-mail address, which the provider has verified, without blanks and with ASCII letters in
   * lower case.
   */
  readonly email: string;
  readonly name: string | null;
  /** The given name, if the provider sends the parts of the name. */
  readonly givenName?: string;
  readonly familyName?: string;
  /**
   * The domain that decides which organization the user joins or founds; null for a user without an
   * organization.
   */
  readonly organizationDomain: string | null;
}

/** The claims of an ID token whose signature, issuer, audience, nonce and times were checked. */
export type Claims = Readonly<Record<string, unknown>>;

const NAME_LIMIT = 200; // in characters

/**
 * Reads the identity of a user from verified claims.
 *
 * @param provider the slug, and the issuer as configured
 * @throws DomainError sign_in_refused if the claims name no subject or no verified e-mail address
 */
export function identityFromClaims(
  provider: { readonly slug: string; readonly issuer: string },
  claims: Claims,
): UpstreamIdentity {
  const subject = text(claims['sub']);
  if (!subject || !isSingleLine(subject))
    throw refused('The identity provider did not identify you: `sub` is missing or malformed.');
  const issuer = text(claims['iss']) ?? provider.issuer;
  const email = verifiedEmail(provider.issuer, claims);
  const hd = text(claims['hd']);
  const hostedDomain = hd === undefined ? undefined : asciiLowerCase(hd);
  const isGoogle = issuer === GOOGLE_ISSUER;
  const domain = isGoogle ? hostedDomain : domainOfEmail(email);
  return {
    provider: provider.slug,
    issuer,
    subject,
    tenant: (isGoogle ? hostedDomain : microsoftTenant(provider.issuer, claims)) ?? '',
    email,
    name: nameIn(claims, 'name') ?? null,
    ...namePart('givenName', nameIn(claims, 'given_name')),
    ...namePart('familyName', nameIn(claims, 'family_name')),
    organizationDomain: domain === undefined ? null : organizationDomain(domain),
  };
}

function nameIn(claims: Claims, claim: string): string | undefined {
  return toSingleLine(text(claims[claim]) ?? '', NAME_LIMIT) ?? undefined;
}

function namePart(part: 'givenName' | 'familyName', name: string | undefined) {
  return name === undefined ? {} : { [part]: name };
}

function verifiedEmail(issuer: string, claims: Claims): string {
  const isMicrosoft = isMicrosoftIssuer(issuer);
  const email = text(claims['email']);
  if (email === undefined) {
    throw refused(
      'The identity provider sent no e-mail address. Its administrator must add the ' +
        (isMicrosoft
          ? 'optional claims `email` and `xms_edov` to the ID token.'
          : '`email` claim.'),
    );
  }
  // Any admin of a Microsoft tenant can write any address into the claim `email`. Only Microsoft
  // itself sets `xms_edov`, which says that the domain is verified.
  if (isMicrosoft && !isTrue(claims['xms_edov'])) {
    throw refused(
      'The identity provider did not confirm that your e-mail address is verified. Its administrator must add the ' +
        'optional claim `xms_edov` to the ID token, and the address must be in a domain the tenant has verified.',
    );
  }
  if (!isMicrosoft && !isVerified(claims['email_verified'])) throw unverified(claims);
  const address = parseEmailAddress(email);
  if (!address) throw refused('The identity provider sent an e-mail address that is malformed.');
  return address;
}

/**
 * Returns true if `email_verified` is true, as JSON or as the text that OneLogin and JumpCloud
 * send.
 */
function isVerified(claim: unknown): boolean {
  return claim === true || claim === 'true';
}

function unverified(claims: Claims): DomainError {
  if (claims['email_verified'] !== undefined) {
    return refused('The identity provider says that your e-mail address is not verified.');
  }
  return refused(
    'The identity provider did not say that your e-mail address is verified. Its administrator must add the ' +
      '`email_verified` claim where it sends the `email` claim.',
  );
}

/**
 * Returns true if `xms_edov` is true in one of the four spellings that Microsoft Entra has used.
 */
function isTrue(claim: unknown): boolean {
  return claim === true || claim === 1 || claim === '1' || claim === 'true';
}

function microsoftTenant(issuer: string, claims: Claims): string | undefined {
  return isMicrosoftIssuer(issuer) ? text(claims['tid']) : undefined;
}

function text(claim: unknown): string | undefined {
  return typeof claim === 'string' && claim !== '' ? claim : undefined;
}

function refused(detail: string): DomainError {
  return new DomainError('sign_in_refused', detail);
}
