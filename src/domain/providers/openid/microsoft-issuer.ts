/** The hosts of Microsoft Entra issuers: the public cloud and the sovereign clouds. */
const MICROSOFT_HOSTS = new Set([
  'login.microsoftonline.com',
  'login.microsoft.com',
  'login.windows.net',
  'sts.windows.net',
  'login.microsoftonline.us',
  'login.partner.microsoftonline.cn',
  'login.chinacloudapi.cn',
  'sts.chinacloudapi.cn',
]);

const COMMON = /\/common\/v2\.0\/?$/i;
const ORGANIZATIONS = /\/organizations(?=\/v2\.0$)/;
/**
 * The id of the tenant of all personal Microsoft accounts. No organization has verified these
 * users.
 */
const PERSONAL_ACCOUNTS = '9188040d-6c67-4c5b-b112-36a304b66dad';
/** The names that a Microsoft issuer can have in place of the id of a tenant. */
const NO_TENANT = /^(?:common|organizations|consumers)$/i;
const PLACEHOLDER = /(?:\{|%7B)tenantid(?:\}|%7D)/i;

/**
 * Returns true for an issuer of Microsoft. ID tokens of Microsoft have the claim `xms_edov` instead
 * of `email_verified`.
 */
export function isMicrosoftIssuer(issuer: string): boolean {
  return MICROSOFT_HOSTS.has(new URL(issuer).hostname) || tenantTemplate(issuer) !== undefined;
}

/** Returns true for the `common` issuer, which serves every tenant and all personal accounts. */
export function isCommonIssuer(issuer: string): boolean {
  return COMMON.test(issuer);
}

/**
 * Returns the `issuer` that the discovery document of an `organizations` v2.0 issuer states: a
 * template with the placeholder `{tenantid}`, which stands for the tenant. Returns undefined for an
 * issuer that serves one tenant.
 */
export function tenantTemplate(issuer: string): string | undefined {
  return ORGANIZATIONS.test(issuer) ? issuer.replace(ORGANIZATIONS, '/{tenantid}') : undefined;
}

/**
 * Returns the issuer of a discovery document with the placeholder written as `{tenantid}`, because
 * the document may have it URL-encoded.
 */
export function normalizeTemplate(documentIssuer: string): string {
  return documentIssuer.replace(PLACEHOLDER, '{tenantid}');
}

/**
 * Returns true if `iss` of an ID token is the issuer template with the token's own `tid`. Otherwise
 * a tenant could issue tokens for another tenant.
 */
export function issuedByOwnTenant(template: string, iss: unknown, tid: unknown): boolean {
  const isTenant = typeof tid === 'string' && /^[\w.-]+$/.test(tid) && !isNoTenant(tid);
  return isTenant && iss === template.replace('{tenantid}', tid);
}

/** Returns true for a `tid` that is no id of a tenant, but a name such as `organizations`. */
export function isNoTenant(tid: unknown): boolean {
  return typeof tid === 'string' && NO_TENANT.test(tid);
}

/** Returns true for the `tid` of Microsoft's personal accounts. */
export function isPersonalTenant(tid: unknown): boolean {
  return typeof tid === 'string' && tid.toLowerCase() === PERSONAL_ACCOUNTS;
}

/** Returns true for the issuer of Microsoft's personal accounts. */
export function isPersonalIssuer(issuer: string): boolean {
  const names = new URL(issuer).pathname.toLowerCase().split('/');
  return (
    isMicrosoftIssuer(issuer) && (names.includes(PERSONAL_ACCOUNTS) || names.includes('consumers'))
  );
}
