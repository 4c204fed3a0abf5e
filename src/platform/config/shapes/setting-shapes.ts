import { X509Certificate, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import { readPem } from '#platform/tls/tls-material.js';
import { parseLogFilter } from './log-filter.js';
import { asciiLowerCase } from '#platform/text/single-line.js';

/** The models that may enroll (SVC_ALLOWED_AAGUIDS): any with a valid chain, a named table, or a list of AAGUIDs. */
export type AaguidPolicy =
  | { readonly kind: 'any' }
  | { readonly kind: 'fips-only' }
  | { readonly kind: 'yubikey-5' }
  | { readonly kind: 'list'; readonly aaguids: ReadonlySet<string> };

/** The forms that a setting has in the JSON document of an object store, beside a string. */
export type JsonForm = 'list' | 'pem' | 'number' | 'flag';

/** The form of each shape in JSON. A shape that is missing here is a string. */
export const JSON_FORMS = z.registry<{ readonly form: JsonForm }>();
const inList = { form: 'list' } as const;
const inPem = { form: 'pem' } as const;
const inDigits = { form: 'number' } as const;

/** A comma-separated list; empty items are dropped. */
export const list = z
  .string()
  .register(JSON_FORMS, inList)
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  );
/** A comma-separated list whose items are ASCII lower-cased. */
export const lowerCasedSet = list.transform((items) => new Set(items.map(asciiLowerCase)));
/** A label of letters, digits and hyphens (RFC 1123 §2.1). */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** A domain of two labels or more, in ASCII and lower case. */
const isDomain = (text: string) =>
  text.length <= 253 && text.includes('.') && text.split('.').every((label) => LABEL.test(label));
/** Returns the ASCII form of a domain, in which a name without these characters stays whole. */
const asDomain = (item: string) =>
  /^[\p{L}\p{M}\p{N}.-]+$/u.test(item) ? domainToASCII(item).replace(/\.$/, '') : '';
/** One domain, in ASCII and lower case. */
export const domainName = z.string().transform((text, context) => {
  const domain = asDomain(text);
  return isDomain(domain) ? domain : refuse(context, 'must be a domain such as corp.example');
});
/** A comma-separated list of domains, and of `*.` with a domain for every subdomain of it. */
export const domainPatterns = list.transform((items, context): readonly string[] => {
  const patterns = items.map((item) =>
    item.startsWith('*.') ? `*.${asDomain(item.slice(2))}` : asDomain(item),
  );
  const fits = patterns.every((pattern) => isDomain(pattern.replace(/^\*\./, '')));
  if (patterns.length > 0 && fits) return patterns;
  return refuse(context, 'must be domains such as corp.example or *.corp.example, comma-separated');
});
/** A whole number between two limits, both included. */
export const wholeNumber = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .register(JSON_FORMS, inDigits)
    .transform(Number)
    .refine((n) => n >= minimum && n <= maximum, `must be between ${minimum} and ${maximum}`);

/** The number of an application: digits, kept as text. */
export const digits = z
  .string()
  .regex(/^\d{1,12}$/, 'must be the number of a GitHub App')
  .register(JSON_FORMS, inDigits);

/** `true` or `false`. */
export const flag = z
  .enum(['true', 'false'], 'must be true or false')
  .register(JSON_FORMS, { form: 'flag' });

/** An origin: scheme, host and port, without a path. */
export const origin = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    return refuse(context, 'must be an http or https URL');
  }
  if (url.username || url.password || url.search || url.hash || url.pathname !== '/') {
    return refuse(context, 'must be an origin only, without path, query or credentials');
  }
  return url.origin;
});

/** A URL with the scheme http or https. */
export const httpUrl = z
  .string()
  .refine(
    (text) => /^https?:\/\//i.test(text) && URL.canParse(text),
    'must be an http or https URL',
  );

/** An address and a port; without an address, every address. */
export const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3]);
  if (!match || port > 65_535 || (host !== '' && isIP(host) === 0 && host !== 'localhost')) {
    return refuse(context, 'must be ADDRESS:PORT, such as [::]:3000 or 127.0.0.1:3000');
  }
  return { host: host === '' ? '::' : host, port };
});

/** A comma-separated list of addresses and CIDR ranges. */
export const cidrList = list.transform((items, context) => {
  for (const item of items) {
    const [address = '', bits, ...rest] = item.split('/');
    const width = isIP(address) === 6 ? 128 : 32;
    const prefixFits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= width);
    if (isIP(address) === 0 || rest.length > 0 || !prefixFits) {
      return refuse(context, 'must be a comma-separated list of addresses or CIDR ranges');
    }
  }
  return items;
});

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The models that may enroll: a named table, or a list of AAGUIDs. */
export const aaguidPolicy = list.transform((items, context): AaguidPolicy => {
  const [only] = items;
  if (items.length === 1 && (only === 'fips-only' || only === 'yubikey-5')) return { kind: only };
  const aaguids = items.map((item) => item.toLowerCase());
  if (!aaguids.every((item) => UUID.test(item))) {
    return refuse(context, 'must be fips-only, yubikey-5, or a comma-separated list of AAGUIDs');
  }
  return aaguids.length === 0 ? { kind: 'any' } : { kind: 'list', aaguids: new Set(aaguids) };
});

/** Certificates in PEM, or a file of them. */
export const certificates = z
  .string()
  .register(JSON_FORMS, inPem)
  .transform((text, context): string[] => {
    try {
      const blocks =
        readPem(text).match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
      if (blocks.length > 0 && blocks.every((block) => new X509Certificate(block).raw.length > 0)) {
        return blocks;
      }
    } catch {
      // The message below omits the reason, which may quote the value.
    }
    return refuse(context, 'must be PEM certificates, or a readable file of them');
  });

/** Log directives, such as `info,security=warn`. */
export const logDirectives = z.string().transform((text, context) => {
  try {
    parseLogFilter(text);
    return text;
  } catch {
    return refuse(
      context,
      'must be directives such as info,security=warn; levels are trace to off',
    );
  }
});

/**
 * Blocks of PEM, base64 of it, or a file of it: the first is the private key that signs, the others are only published. A public
 * key may come first only where a key in KMS signs, which `kms-settings.ts` checks.
 */
export const signingKeys = (fits: (key: KeyObject) => boolean, message: string) =>
  z
    .string()
    .register(JSON_FORMS, inPem)
    .transform((text, context): string[] => {
      try {
        const pem = readPem(text);
        const blocks = pem.match(/-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g) ?? [];
        const [first = '', ...others] = blocks;
        const isWhole = pem.split('-----BEGIN ').length - 1 === blocks.length;
        const fitsAll = [first, ...others].every((block) => fits(createPublicKey(block)));
        const isSound = !isPrivate(first) || fits(createPrivateKey(first));
        if (isWhole && fitsAll && isSound) return blocks;
      } catch {
        // The message below omits the reason, which may quote the value.
      }
      return refuse(context, message);
    });

/** Checks that a block of PEM is a private key. */
export function isPrivate(pem: string): boolean {
  return pem.includes('PRIVATE KEY-----');
}

/** Checks that a key is a P-256 key. */
export function isP256({
  asymmetricKeyType: type,
  asymmetricKeyDetails: details,
}: KeyObject): boolean {
  return type === 'ec' && details?.namedCurve === 'prime256v1';
}

/** Checks that a key is an RSA key of 3072 bits or more. */
export function isLongRsa({
  asymmetricKeyType: type,
  asymmetricKeyDetails: details,
}: KeyObject): boolean {
  return type === 'rsa' && (details?.modulusLength ?? 0) >= 3072;
}

/** An RSA private key in PKCS#1 or PKCS#8, which becomes PKCS#8. */
export const rsaPrivateKey = z
  .string()
  .register(JSON_FORMS, inPem)
  .transform((text, context): string => {
    try {
      const key = createPrivateKey(readPem(text));
      if (key.asymmetricKeyType === 'rsa') {
        return key.export({ type: 'pkcs8', format: 'pem' }).toString();
      }
    } catch {
      // The message below omits the reason, which may quote the value.
    }
    return refuse(context, 'must be an RSA private key in PEM, base64 of it, or a readable file');
  });

/** Printable ASCII without spaces, which fits into a header. */
export const headerText = z
  .string()
  .max(255, 'must have 255 characters at most')
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces');

/** An address that is https, loopback apart, without query; a trailing slash is dropped. */
export const httpsUrl = z.string().transform((text, context): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.username || url.password || url.search || url.hash) {
    return refuse(context, 'must be a URL without query or credentials');
  }
  if (!isHttpsOrLoopback(text)) return refuse(context, 'must be https (http only for localhost)');
  return url.href.replace(/\/+$/, '');
});

const KMS_KEY_ID =
  /^(?:arn:[a-z0-9-]{1,32}:kms:[a-z0-9-]{1,32}:\d{12}:(?:key|alias)\/)?[A-Za-z0-9/_-]{1,256}$/;
/** Keys in AWS KMS: ids, ARNs or aliases, comma-separated. */
export const kmsKeyIds = list
  .refine(
    (ids) =>
      ids.length > 0 && ids.every((id) => KMS_KEY_ID.test(id)) && new Set(ids).size === ids.length,
    'must be ids or ARNs of different keys in AWS KMS, comma-separated',
  )
  .register(JSON_FORMS, inList);
/** One key in AWS KMS. */
export const kmsKeyId = z.string().regex(KMS_KEY_ID, 'must be the id or ARN of a key in AWS KMS');
/** The address of a document, which may have a query: https, loopback apart. */
export const metadataUrl = z
  .string()
  .refine((text) => URL.canParse(text), { error: 'must be a URL', abort: true })
  .refine((text) => isHttpsOrLoopback(text), 'must be https (http only for localhost)')
  .refine((text) => {
    const { username, password, hash } = new URL(text);
    return !username && !password && !hash;
  }, 'must have no credentials and no fragment');

/** The entity id of a SAML service provider: a URI (SAML Core §8.3.6). */
export const entityId = z
  .string()
  .regex(
    /^[a-z][a-z\d+.-]*:[\x21-\x7e]{1,1000}$/i,
    'must be a URI, such as https://svc.example.com/saml/metadata',
  );

/** The name of a SAML attribute. */
export const attributeName = z
  .string()
  .regex(/^(?! )[\x20-\x7e]{1,512}(?<! )$/, 'must be 512 printable ASCII characters at most');

/** A name that a page shows. */
export const shortName = z.string().max(64, 'must have 64 characters at most');

/** The root secret, from which every other secret derives. */
export const rootSecret = z
  .string()
  .min(32, 'must have at least 32 characters')
  .refine((text) => new Set(text).size > 1, 'must not be one repeated character');

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

/** The URI of a contact (RFC 9116 §2.5.3). It is printable ASCII alone, so that it stays one line. */
export const contactUri = z
  .string()
  .max(512, 'must have at most 512 characters')
  .refine(
    (text) => /^(?:https:\/\/|mailto:|tel:)[!-~]+$/i.test(text) && URL.canParse(text),
    'must be an https:, mailto: or tel: URI',
  );
