/**
 * Host names that a user could mistake for the service itself, or that programs look for by
 * convention.
 */
const NAMES = `
  about abuse account accounts admin administrator alpha api app apps assets auth autoconfig autodiscover aws azure
  beta billing blog broadcasthost ca callback cdn certification chat cli cloud community config console contact
  crl dashboard demo dev device devices dns docs download downloads email enroll enrollment example ftp gateway
  git github gitlab google graphql health help host hostmaster http https id identity idp imap info internal
  invoice issuer jwks keys krl kubernetes ldap localhost local localdomain login logout mail mailer mailserver
  metadata metrics microsoft monitor mtls mta-sts mx network news node ns ns1 ns2 ns3 ntp oauth oauth2 ocsp
  oidc okta openid operator payment payments ping pki pop pop3 portal postmaster private prod production proxy
  public ready register registration relay root rss saml scim sandbox secure security server service services
  sessions shop signin signup site smtp ssf ssh ssl sso stage staging static stats status store sts support svc
  svc-cli sync sysadmin system test testing tls token tokens tools update upload user users uucp vpn webauthn
  webhook webhooks webmail webmaster well-known wiki wpad www www1 www2 www3
`;

/**
 * The labels that no organization can claim as an issuer. If a label is added to this list, an
 * organization that has it already keeps it.
 */
export const RESERVED_LABELS: ReadonlySet<string> = new Set(NAMES.trim().split(/\s+/));
