import type { z } from 'zod';
import type { Environment } from '#platform/config/environment.js';
import { providerVariable } from '#platform/config/provider-settings.js';
import { PROVIDER_VARIABLES } from '#platform/config/table/providers.js';
import { SLUG } from '#platform/config/table/shapes.js';
import { TABLE, VARIABLES } from '#platform/config/table/settings.js';
import { editDistance } from '#platform/text/edit-distance.js';
import { toSingleLine } from '#platform/text/single-line.js';
import { isPem } from '#platform/tls/pem.js';
import { asVariable, jsonFormOf } from './json-value.js';

/**
 * The prefix of every problem and warning about a setting that came from the configuration document
 * in the object store.
 */
export const FROM_STORE = 'object store: ';

/**
 * The keys that the configuration document may not set. Some say where the document and the data
 * are, which the service must know before it reads the document. The others switch on certification
 * test mode, which only the operator of the machine may do.
 */
const FORBIDDEN =
  /^(?:certification_test_token|certification_host|database_url|data_dir|s3_config(?:_.*)?)$/;

/**
 * The environment variable for each key that the configuration document may have. Variables of the
 * AWS SDK have no key. The variables for TLS and for identity providers are not in this map,
 * because the document has them inside of `tls` and `idps`.
 */
const KEYS = new Map(
  [...VARIABLES.values()]
    .filter(({ name }) => /^(?:SVC_(?!TLS_|IDPS$)|RUST_|OTEL_)/.test(name))
    .map((row) => [row.name.replace(/^SVC_/, '').toLowerCase(), row]),
);
const KNOWN = [...KEYS.keys(), 'tls', 'idps'];
const TLS_KEYS = Object.keys(TABLE.http.tls);

/**
 * The variable of each key that an identity provider has in the document, without the prefix
 * `SVC_IDP_<SLUG>_`.
 */
const PROVIDER_KEYS = new Map(
  [...PROVIDER_VARIABLES.values()].map((row) => [row.name.toLowerCase(), row]),
);
const KNOWN_OF_PROVIDER = ['id', ...PROVIDER_KEYS.keys()];

/**
 * The largest number of unknown keys that get a warning. A document of 1 MiB can have tens of
 * thousands of them. Each costs a search for a similar name, and a line of the log.
 */
const MOST_WARNINGS = 20;

/**
 * The settings of the configuration document in the object store, converted to environment
 * variables. A problem names the key of the document, never its value.
 */
export class DocumentSettings {
  readonly #variables: Record<string, string> = {};
  /**
   * For each variable that the document sets, the key by which a problem names it: the variable
   * `SVC_TLS_CERT` has the key `tls.cert`. If the document has an object such as `tls`, all its
   * possible members are listed, even those that it leaves out.
   */
  readonly keys = new Map<string, string>();
  readonly problems: string[] = [];
  readonly warnings: string[] = [];

  constructor(document: Readonly<Record<string, unknown>>) {
    for (const [key, value] of Object.entries(document)) {
      const row = KEYS.get(key);
      if (FORBIDDEN.test(key)) {
        this.problems.push(`SVC_S3_CONFIG_KEY: the document may not set ${key}; set its variable`);
      } else if (key === 'tls') this.#addTls(value);
      else if (key === 'idps') this.#addProviders(value);
      else if (row) this.#add(key, row.name, row.shape, value);
      else this.#unknown(key, KNOWN);
    }
  }

  get variables(): Environment {
    return this.#variables;
  }

  /**
   * True if the document has identity providers. If so, they replace all providers of the
   * environment.
   */
  get hasProviders(): boolean {
    return this.keys.has('SVC_IDPS');
  }

  /**
   * Adds the variable of a key, or a problem if the value does not fit. A PEM value must be the
   * text itself: the document cannot name a file of this machine.
   */
  #add(key: string, variable: string, shape: z.ZodType, value: unknown): void {
    this.keys.set(variable, key);
    const form = jsonFormOf(shape);
    const mustBePem = form === 'pem' || key.startsWith('tls.');
    const read = asVariable(value, form);
    if ('problem' in read) this.#problem(key, read.problem);
    else if (!mustBePem || read.text === '' || isPem(read.text))
      this.#variables[variable] = read.text;
    else this.#problem(key, 'must be PEM or base64 of PEM; the document names no files');
  }

  /** Adds `tls: {cert, key}` as two variables. Each value is PEM or base64 of PEM. */
  #addTls(value: unknown): void {
    if (!isObject(value)) return this.#problem('tls', 'must be an object of cert and key');
    for (const key of Object.keys(value)) {
      if (!TLS_KEYS.includes(key)) this.#unknown(key, TLS_KEYS, 'tls.');
    }
    for (const [name, row] of Object.entries(TABLE.http.tls)) {
      const given = value[name] ?? '';
      this.#add(`tls.${name}`, row.name, row.shape, given);
      if (given === '') this.#problem(`tls.${name}`, 'is required');
    }
  }

  /** Adds `idps`, the list of identity providers, as the variables of each provider. */
  #addProviders(value: unknown): void {
    this.keys.set('SVC_IDPS', 'idps');
    const providers: readonly unknown[] = Array.isArray(value) ? value : [];
    if (providers.length === 0) this.#problem('idps', 'must be an array of one object or more');
    const slugs = providers.flatMap((provider, at) => this.#addProvider(provider, `idps[${at}]`));
    this.#variables['SVC_IDPS'] = slugs.join(',');
  }

  /**
   * Adds one identity provider. Returns an array with its slug. The array is empty if the provider
   * is no object, or its slug is missing or malformed.
   */
  #addProvider(provider: unknown, at: string): readonly string[] {
    if (!isObject(provider)) this.#problem(at, 'must be an object');
    else if (provider['id'] === undefined) this.#problem(`${at}.id`, 'is required');
    else if (!isSlug(provider['id'])) this.#problem(`${at}.id`, 'is malformed');
    else return [this.#addSettings(provider['id'], provider, at)];
    return [];
  }

  #addSettings(slug: string, provider: Readonly<Record<string, unknown>>, at: string): string {
    for (const [key, { name }] of PROVIDER_KEYS) {
      this.keys.set(providerVariable(slug, name), `${at}.${key}`);
    }
    for (const [key, value] of Object.entries(provider)) {
      const row = PROVIDER_KEYS.get(key);
      if (row) this.#add(`${at}.${key}`, providerVariable(slug, row.name), row.shape, value);
      else if (key !== 'id') this.#unknown(key, KNOWN_OF_PROVIDER, `${at}.`);
    }
    return slug;
  }

  #problem(key: string, text: string): void {
    this.problems.push(`${FROM_STORE}${key}: ${text}`);
  }

  #unknown(key: string, known: readonly string[], prefix = ''): void {
    if (this.warnings.length > MOST_WARNINGS) return;
    if (this.warnings.length === MOST_WARNINGS) {
      this.warnings.push(`${FROM_STORE}has further keys that are not keys of the document`);
      return;
    }
    const nearest = known.find((name) => editDistance(name, key.slice(0, 64).toLowerCase()) <= 2);
    const suggestion = nearest === undefined ? '' : `; did you mean ${nearest}?`;
    const name = toSingleLine(key, 64) ?? '""';
    this.warnings.push(`${FROM_STORE}${prefix}${name}: is not a key of the document${suggestion}`);
  }
}

function isSlug(value: unknown): value is string {
  return typeof value === 'string' && SLUG.test(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
