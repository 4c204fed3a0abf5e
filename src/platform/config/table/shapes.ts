import { z } from 'zod';
import { parseLogFilter } from '#platform/telemetry/filter/log-filter.js';
import * as addresses from '#platform/text/addresses.js';
import { readBy } from '#platform/text/shape-of-reader.js';
import { origin } from '#platform/text/url-shapes.js';
import * as readable from '#platform/tls/pem-shapes.js';

export {
  contactUri,
  entityId,
  httpsUrl,
  httpUrl,
  metadataUrl,
  origin,
  safeOrigin,
  safeUrl,
} from '#platform/text/url-shapes.js';
export { tlsCertificates, tlsKey } from '#platform/tls/pem-shapes.js';

/** The key models that may enroll: all with a valid attestation, a built-in set, or by AAGUID. */
export type AaguidPolicy =
  | { readonly kind: 'any' }
  | { readonly kind: 'fips-only' | 'yubikey-5' }
  | { readonly kind: 'list'; readonly aaguids: ReadonlySet<string> };

/** The forms other than a string that a setting can have in a JSON document. */
export type JsonForm = 'list' | 'pem' | 'number' | 'flag';

/** The form of each shape in a JSON document. A shape that is not registered here is a string. */
export const JSON_FORMS = z.registry<{ readonly form: JsonForm }>();

const text = (pattern: RegExp, message: string) => z.string().regex(pattern, message);
/** A PEM text, base64 of such a text, or the path of a file with one. */
const pem = z.string().register(JSON_FORMS, { form: 'pem' });
const everyItem = z
  .string()
  .register(JSON_FORMS, { form: 'list' })
  .transform((items) => items.split(',').map((item) => item.trim()));
/** A comma-separated list; empty items are dropped. */
const list = everyItem.transform((items) => items.filter((item) => item !== ''));

export const shortText = (most: number) =>
  z.string().max(most, `must have ${most} characters at most`);
export const longText = (least: number) =>
  z.string().min(least, `must have at least ${least} characters`);
export const printable = (most: number) =>
  text(
    new RegExp(`^(?! )[\\x20-\\x7e]{1,${most}}(?<! )$`),
    `must be ${most} printable ASCII characters at most`,
  );

/** A whole number between two limits, both included. */
export const wholeNumber = (minimum: number, maximum: number) =>
  text(/^\d{1,9}$/, 'must be a whole number')
    .register(JSON_FORMS, { form: 'number' })
    .transform(Number)
    .refine((n) => n >= minimum && n <= maximum, `must be between ${minimum} and ${maximum}`);

/** A flag: `true` or `false`. The default is `false`. */
export const flag = z
  .enum(['true', 'false'], 'must be true or false')
  .register(JSON_FORMS, { form: 'flag' })
  .default('false')
  .transform((value) => value === 'true');

/** Domains of e-mail addresses, and e-mail addresses, each spelled as the database stores them. */
export const emailDomains = readBy(list, addresses.asEmailDomains, addresses.EMAIL_DOMAINS);
export const emailAddresses = readBy(list, addresses.asEmailAddresses, addresses.EMAIL_ADDRESSES);

/** A domain of two labels or more. */
export const domainName = readBy(
  z.string(),
  addresses.asDomain,
  'must be a domain such as corp.example',
);

/** A comma-separated list of domains. `*.corp.example` means every subdomain of `corp.example`. */
export const domainPatterns = readBy(
  list,
  addresses.asDomainPatterns,
  'must be domains such as corp.example or *.corp.example, comma-separated',
);

/** A comma-separated list of the origins that CORS allows. A pattern such as `*` is refused. */
export const corsOrigins = list
  .refine((items) => !items.some((item) => item.includes('*')), {
    error: 'must name origins: * is refused',
    abort: true,
  })
  .pipe(z.array(origin));

/** An IP address or `localhost`, and a port. Without the address: every address of the machine. */
export const listenAddress = readBy(
  z.string(),
  addresses.asListenAddress,
  'must be ADDRESS:PORT, such as [::]:3000 or 127.0.0.1:3000',
);
export const cidrList = list.refine(
  (items) => items.every(addresses.isNetwork),
  'must be a comma-separated list of addresses or CIDR ranges',
);

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const aaguidPolicy = readBy(
  everyItem,
  (items): AaguidPolicy | undefined => {
    const only = items.join(); // an empty item is malformed, and never means any key
    if (only === '') return { kind: 'any' };
    if (only === 'fips-only' || only === 'yubikey-5') return { kind: only };
    const aaguids = items.map((item) => item.toLowerCase());
    const isList = aaguids.every((item) => UUID.test(item));
    return isList ? { kind: 'list', aaguids: new Set(aaguids) } : undefined;
  },
  'must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs',
);

export const SLUG = /^(?!-)[a-z0-9-]{1,32}(?<!-)$/;
export const slugs = list
  .pipe(z.array(text(SLUG, 'has a malformed slug')))
  .refine((items) => new Set(items).size === items.length, 'names a slug twice');

const PRINCIPAL_KINDS = 'must be email, username, or both';
export const principalKinds = list
  .pipe(z.array(z.enum(['email', 'username'], PRINCIPAL_KINDS)).min(1, PRINCIPAL_KINDS))
  .default(['email'])
  .transform((kinds) => new Set(kinds));

const KMS_KEY_ID =
  /^(?:arn:[a-z0-9-]{1,32}:kms:[a-z0-9-]{1,32}:\d{12}:(?:key|alias)\/)?[A-Za-z0-9/_-]{1,256}$/;
export const kmsKeyId = text(KMS_KEY_ID, 'must be the id or ARN of a key in AWS KMS');
export const kmsKeyIds = list.refine(
  (ids) =>
    ids.length > 0 && ids.every((id) => KMS_KEY_ID.test(id)) && new Set(ids).size === ids.length,
  'must be ids or ARNs of different keys in AWS KMS, comma-separated',
);
/** Ids or ARNs of keys in AWS KMS. An alias is refused, because it may later name another key. */
export const lastingKmsKeyIds = kmsKeyIds.refine(
  (ids) => ids.every((id) => !id.includes('alias/')),
  'must not name an alias: what a key wrapped, only that key opens',
);

/** The root secret, from which the keys of the service are derived. */
export const rootSecret = longText(32).refine(
  (value) => new Set(value).size > 1,
  'must not be one repeated character',
);
export const certificates = pem.pipe(readable.certificates);
/** An RSA private key in PKCS#1 or PKCS#8. The value is converted to PKCS#8. */
export const rsaPrivateKey = pem.pipe(readable.rsaPrivateKey);
/** An Ed25519 private key in PKCS#8. */
export const ed25519PrivateKey = pem.pipe(readable.ed25519PrivateKey);
/** Keys as PEM. The first key is private and signs. The other keys are only published. */
export const signingKeys = {
  ec: pem.pipe(readable.signingKeys.ec),
  rsa: pem.pipe(readable.signingKeys.rsa),
};

/** The number of a GitHub App: digits, kept as text. */
export const appNumber = text(/^\d{1,12}$/, 'must be the number of a GitHub App').register(
  JSON_FORMS,
  { form: 'number' },
);
/** Printable ASCII without spaces, which can be the value of an HTTP header. */
export const headerText = shortText(255).regex(
  /^[\x21-\x7e]+$/,
  'must be printable ASCII without spaces',
);
/** The bearer token with which a monitoring system reads the metrics. */
export const bearerToken = text(
  /^(?! )[\x20-\x7e]+(?<! )$/,
  'must be printable ASCII: it has to fit into a header',
);
/** The audience of a token, such as `sts.amazonaws.com`, as printable ASCII without spaces. */
export const audience = text(
  /^[\x21-\x7e]{1,255}$/,
  'must be 1 to 255 printable ASCII characters without a space',
);
export const bucket = text(/^[\w.:/-]{3,255}$/, 'must be the name of a bucket');
export const region = text(/^[a-z0-9-]{1,32}$/, 'must be a region such as eu-central-1, or auto');
/** One of a few fixed words. */
export const oneOf = <const Words extends readonly string[]>(...words: Words) =>
  z.enum(words, `must be ${words.join(' or ')}`);
export const otlpProtocol = z.literal(
  'http/protobuf',
  'must be http/protobuf, the only one that is spoken',
);
/** Log directives, such as `info,security=warn`: a general level, and levels for single targets. */
export const logDirectives = readBy(
  z.string(),
  (value) => parseLogFilter(value) && value,
  'must be directives such as info,security=warn; levels are trace to off',
);
