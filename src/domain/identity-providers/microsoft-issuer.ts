/** Where Microsoft Entra signs people in: the public cloud and the sovereign ones. */
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
/** The tenant that every personal account belongs to: its members vouch for themselves alone. */
const PERSONAL_ACCOUNTS = '9188040d-6c67-4c5b-b112-36a304b66dad';
/** Names that stand for many tenants, and so for none. */
const NO_TENANT = /^(?:common|organizations|consumers)$/i;
const PLACEHOLDER = /(?:\{|%7B)tenantid(?:\}|%7D)/i;

/** Whether Microsoft issues the tokens, who vouches for an e-mail by `xms_edov` instead of `email_verified`. */
export function isMicrosoftIssuer(issuer: string): boolean {
  return MICROSOFT_HOSTS.has(new URL(issuer).hostname) || tenantTemplate(issuer) !== undefined;
}

/** Whether it is the issuer of every tenant and of personal accounts alike, whose members nobody vouches for. */
export function isCommonIssuer(issuer: string): boolean {
  return COMMON.test(issuer);
}

/**
 * What the discovery document of an `organizations` v2.0 issuer calls itself: the issuer of each tenant, with
 * `{tenantid}` in its place. Undefined for an issuer that serves one tenant.
 */
export function tenantTemplate(issuer: string): string | undefined {
  return ORGANIZATIONS.test(issuer) ? issuer.replace(ORGANIZATIONS, '/{tenantid}') : undefined;
}

/** A document's issuer with its placeholder in the one spelling `{tenantid}`, also where it came URL-encoded. */
export function normalizeTemplate(documentIssuer: string): string {
  return documentIssuer.replace(PLACEHOLDER, '{tenantid}');
}

/** Whether an ID token's `iss` is the template with its own `tid`, one tenant: no tenant speaks for another. */
export function issuedByOwnTenant(template: string, iss: unknown, tid: unknown): boolean {
  const isTenant = typeof tid === 'string' && /^[\w.-]+$/.test(tid) && !isNoTenant(tid);
  return isTenant && iss === template.replace('{tenantid}', tid);
}

/** Whether a `tid` names no tenant, but many: `organizations` and the like. */
export function isNoTenant(tid: unknown): boolean {
  return typeof tid === 'string' && NO_TENANT.test(tid);
}

/** Whether a `tid` is the tenant of Microsoft's personal accounts. */
export function isOfPersonalAccounts(tid: unknown): boolean {
  return typeof tid === 'string' && tid.toLowerCase() === PERSONAL_ACCOUNTS;
}

/** Whether it is the issuer of Microsoft's personal accounts. */
export function isPersonalIssuer(issuer: string): boolean {
  const names = new URL(issuer).pathname.toLowerCase().split('/');
  return (
    isMicrosoftIssuer(issuer) && (names.includes(PERSONAL_ACCOUNTS) || names.includes('consumers'))
  );
}
