import { z } from 'zod';
import { isHttpsOrLoopback } from './loopback.js';

const isBare = ({ username, password, search, hash }: URL) =>
  `${username}${password}${search}${hash}` === '';
const NO_WEB = 'must be an http or https URL';
const SAFE = 'must be https (http only for localhost)';
const url = (fits: (value: URL) => boolean, error: string) =>
  z.string().refine((value) => URL.canParse(value) && fits(new URL(value)), { error, abort: true });

/**
 * A URL with the scheme http or https to which a path can be appended. So it has no query and no
 * fragment, and does not end with a space or control character, which a URL parser would drop.
 */
export const httpUrl = z
  .string()
  .refine(
    (value) => /^https?:\/\/[^?#]*[^?#\0-\x20]$/i.test(value) && URL.canParse(value),
    'must be an http or https URL without query and fragment',
  );
/** An origin of http or https: scheme, host and port, without a path. */
export const origin = url(({ protocol }) => /^https?:$/.test(protocol), NO_WEB)
  .refine((value) => isBare(new URL(value)) && new URL(value).pathname === '/', {
    error: 'must be an origin only, without path, query or credentials',
    abort: true,
  })
  .transform((value) => new URL(value).origin);
/** An origin with the scheme https; http is allowed for a loopback host. */
export const safeOrigin = origin.refine(isHttpsOrLoopback, SAFE);
/** A URL with the scheme https; http is allowed for a loopback host. */
export const safeUrl = url(() => true, 'must be a URL').refine(isHttpsOrLoopback, SAFE);
/** The URL of a document, which may have a query: https, or http for a loopback host. */
export const metadataUrl = safeUrl.refine((value) => {
  const { username, password, hash } = new URL(value);
  return !username && !password && !hash;
}, 'must have no credentials and no fragment');
/** The base URL of an API without query or credentials: https, or http for a loopback host. */
export const httpsUrl = url(isBare, 'must be a URL without query or credentials')
  .refine(isHttpsOrLoopback, SAFE)
  .transform((value) => new URL(value).href.replace(/\/+$/, ''));
/**
 * The URI of a contact (RFC 9116 §2.5.3). It has no line break, which would add a forged line to
 * the file `security.txt`.
 */
export const contactUri = z
  .string()
  .max(512, 'must have at most 512 characters')
  .refine(
    (value) => /^(?:https:\/\/|mailto:|tel:)[!-~]+$/i.test(value) && URL.canParse(value),
    'must be an https:, mailto: or tel: URI',
  );
/** The entity id of a SAML service provider: a URI (SAML Core §8.3.6). */
export const entityId = z
  .string()
  .regex(
    /^[a-z][a-z\d+.-]*:[\x21-\x7e]{1,1000}$/i,
    'must be a URI, such as https://svc.example.com/saml/metadata',
  );
