import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { JSON_FORMS, list, readBy, shortText, text } from './base-shapes.js';
import { parseLogFilter } from '#platform/telemetry/filter/log-filter.js';

/** The models that may enroll: any with a valid chain, a named table, or a list of AAGUIDs. */
export type AaguidPolicy =
  | { readonly kind: 'any' }
  | { readonly kind: 'fips-only' | 'yubikey-5' }
  | { readonly kind: 'list'; readonly aaguids: ReadonlySet<string> };

/** A comma-separated list whose items are ASCII lower-cased. */
export const lowerCasedSet = list.transform((items) => new Set(items.map(asciiLowerCase)));

/** A label of letters, digits and hyphens (RFC 1123 §2.1). */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Returns a domain of two labels or more, in ASCII and lower case; undefined for another name. */
function asDomain(item: string): string | undefined {
  if (!/^[\p{L}\p{M}\p{N}.-]+$/u.test(item)) return undefined;
  const domain = domainToASCII(item).replace(/\.$/, '');
  const isDomain = domain.length <= 253 && domain.includes('.');
  return isDomain && domain.split('.').every((label) => LABEL.test(label)) ? domain : undefined;
}

/** One domain, in ASCII and lower case. */
export const domainName = readBy(z.string(), asDomain, 'must be a domain such as corp.example');

/** A comma-separated list of domains, and of `*.` with a domain for every subdomain of it. */
export const domainPatterns = readBy(
  list,
  (items): readonly string[] | undefined => {
    const patterns = items.map((item) => {
      const [wildcard, name] = item.startsWith('*.') ? ['*.', item.slice(2)] : ['', item];
      const domain = asDomain(name);
      return domain === undefined ? [] : [wildcard + domain];
    });
    return items.length > 0 && patterns.every(({ length }) => length === 1)
      ? patterns.flat()
      : undefined;
  },
  'must be domains such as corp.example or *.corp.example, comma-separated',
);

const isHttp = (value: string) => /^https?:\/\//i.test(value) && URL.canParse(value);
const isBare = ({ username, password, search, hash }: URL) =>
  `${username}${password}${search}${hash}` === '';
const SAFE = 'must be https (http only for localhost)';

/** A URL with the scheme http or https. */
export const httpUrl = z.string().refine(isHttp, 'must be an http or https URL');

/** An origin: scheme, host and port, without a path. */
export const origin = z
  .string()
  .refine((value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol), {
    error: 'must be an http or https URL',
    abort: true,
  })
  .refine((value) => isBare(new URL(value)) && new URL(value).pathname === '/', {
    error: 'must be an origin only, without path, query or credentials',
    abort: true,
  })
  .transform((value) => new URL(value).origin);

/** An origin that is https, loopback apart. */
export const safeOrigin = origin.refine(isHttpsOrLoopback, SAFE);

/** Origins, of which none is a pattern. */
export const corsOrigins = list
  .refine((items) => !items.some((item) => item.includes('*')), {
    error: 'must name origins: * is refused',
    abort: true,
  })
  .pipe(z.array(origin));

/** A URL that is https, loopback apart. */
export const safeUrl = z
  .string()
  .refine((value) => URL.canParse(value), { error: 'must be a URL', abort: true })
  .refine(isHttpsOrLoopback, SAFE);

/** The address of a document, which may have a query. */
export const metadataUrl = safeUrl.refine((value) => {
  const { username, password, hash } = new URL(value);
  return !username && !password && !hash;
}, 'must have no credentials and no fragment');

/** The address of an API: https, loopback apart, without query. A trailing slash is dropped. */
export const httpsUrl = z
  .string()
  .refine((value) => URL.canParse(value) && isBare(new URL(value)), {
    error: 'must be a URL without query or credentials',
    abort: true,
  })
  .refine(isHttpsOrLoopback, SAFE)
  .transform((value) => new URL(value).href.replace(/\/+$/, ''));

/**
 * The URI of a contact (RFC 9116 §2.5.3). It is printable ASCII alone, so that it stays one line.
 */
export const contactUri = z
  .string()
  .max(512, 'must have at most 512 characters')
  .refine(
    (value) => /^(?:https:\/\/|mailto:|tel:)[!-~]+$/i.test(value) && URL.canParse(value),
    'must be an https:, mailto: or tel: URI',
  );

/** The entity id of a SAML service provider: a URI (SAML Core §8.3.6). */
export const entityId = text(
  /^[a-z][a-z\d+.-]*:[\x21-\x7e]{1,1000}$/i,
  'must be a URI, such as https://svc.example.com/saml/metadata',
);

/** An address and a port; without an address, every address. */
export const listenAddress = readBy(
  z.string(),
  (value) => {
    const match = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(value);
    const host = match?.[1] ?? match?.[2] ?? '';
    const port = Number(match?.[3]);
    if (!match || port > 65_535) return undefined;
    if (host === '') return { host: '::', port };
    return isIP(host) !== 0 || host === 'localhost' ? { host, port } : undefined;
  },
  'must be ADDRESS:PORT, such as [::]:3000 or 127.0.0.1:3000',
);

/** A comma-separated list of addresses and CIDR ranges. */
export const cidrList = list.refine(
  (items) =>
    items.every((item) => {
      const [address = '', bits = '0', ...rest] = item.split('/');
      const width = isIP(address) === 6 ? 128 : 32;
      const isRange = /^\d{1,3}$/.test(bits) && Number(bits) <= width;
      return isIP(address) !== 0 && rest.length === 0 && isRange;
    }),
  'must be a comma-separated list of addresses or CIDR ranges',
);

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The models that may enroll: a named table, or a list of AAGUIDs. */
export const aaguidPolicy = readBy(
  list,
  (items): AaguidPolicy | undefined => {
    const [only] = items;
    if (only === undefined) return { kind: 'any' };
    if (items.length === 1 && (only === 'fips-only' || only === 'yubikey-5')) return { kind: only };
    const aaguids = items.map((item) => item.toLowerCase());
    const isList = aaguids.every((item) => UUID.test(item));
    return isList ? { kind: 'list', aaguids: new Set(aaguids) } : undefined;
  },
  'must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs',
);

/** The slugs of providers. */
export const slugs = list
  .pipe(z.array(text(/^(?!-)[a-z0-9-]{1,32}(?<!-)$/, 'has a malformed slug')))
  .refine((items) => new Set(items).size === items.length, 'names a slug twice');

/** The kinds of principals in SSH certificates. */
export const principalKinds = list
  .pipe(z.array(z.enum(['email', 'username'], 'must be email, username, or both')).min(1))
  .default(['email'])
  .transform((kinds) => new Set(kinds));

const KMS_KEY_ID =
  /^(?:arn:[a-z0-9-]{1,32}:kms:[a-z0-9-]{1,32}:\d{12}:(?:key|alias)\/)?[A-Za-z0-9/_-]{1,256}$/;
/** One key in AWS KMS. */
export const kmsKeyId = text(KMS_KEY_ID, 'must be the id or ARN of a key in AWS KMS');
/** Keys in AWS KMS: ids, ARNs or aliases, comma-separated. */
export const kmsKeyIds = list.refine(
  (ids) =>
    ids.length > 0 && ids.every((id) => KMS_KEY_ID.test(id)) && new Set(ids).size === ids.length,
  'must be ids or ARNs of different keys in AWS KMS, comma-separated',
);
/** Keys in AWS KMS by ids or ARNs, because an alias may later name another key. */
export const lastingKmsKeyIds = kmsKeyIds.refine(
  (ids) => ids.every((id) => !id.includes('alias/')),
  'must not name an alias: what a key wrapped, only that key opens',
);

const printable = (most: number) =>
  text(
    new RegExp(`^(?! )[\\x20-\\x7e]{1,${most}}(?<! )$`),
    `must be ${most} printable ASCII characters at most`,
  );

/** The name of a SAML attribute. */
export const attributeName = printable(512);
/** The name of a GitHub App. */
export const appName = printable(64);

/** The number of a GitHub App: digits, kept as text. */
export const appNumber = text(/^\d{1,12}$/, 'must be the number of a GitHub App').register(
  JSON_FORMS,
  { form: 'number' },
);

/** Printable ASCII without spaces, which fits into a header. */
export const headerText = shortText(255).regex(
  /^[\x21-\x7e]+$/,
  'must be printable ASCII without spaces',
);

/** The token of a scraper. */
export const bearerToken = text(
  /^(?! )[\x20-\x7e]+(?<! )$/,
  'must be printable ASCII: it has to fit into a header',
);

/** The audience of a token. */
export const audience = text(
  /^[\x21-\x7e]{1,255}$/,
  'must be 1 to 255 printable ASCII characters without a space',
);

/** The name of a bucket. */
export const bucket = text(/^[\w.:/-]{3,255}$/, 'must be the name of a bucket');
/** A region of an object store. */
export const region = text(/^[a-z0-9-]{1,32}$/, 'must be a region such as eu-central-1, or auto');

/** The way in which the standbys of the database replicate. */
export const replication = z.enum(
  ['synchronous', 'asynchronous'],
  'must be synchronous or asynchronous',
);

/** The protocol of a collector of traces. */
export const otlpProtocol = z.literal(
  'http/protobuf',
  'must be http/protobuf, the only one that is spoken',
);

/** Log directives, such as `info,security=warn`. */
export const logDirectives = readBy(
  z.string(),
  (value) => parseLogFilter(value) && value,
  'must be directives such as info,security=warn; levels are trace to off',
);
