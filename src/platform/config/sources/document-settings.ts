import type { z } from 'zod';
import type { Environment } from '#platform/config/environment.js';
import { PROVIDER_VARIABLES, providerVariable } from '#platform/config/provider-settings.js';
import { TABLE, VARIABLES } from '#platform/config/table/table.js';
import { toSingleLine } from '#platform/text/single-line.js';
import { editDistance } from '#platform/text/edit-distance.js';
import { isPem } from '#platform/tls/pem.js';
import { asVariable, jsonFormOf, NOT_PEM } from './json-value.js';

/** The settings of a document as variables. A problem names the key, never its value. */
export interface DocumentSettings {
  readonly variables: Environment;
  /**
   * The key of each variable that the document sets or, within an object, could set: `SVC_TLS_CERT`
   * is `tls.cert`.
   */
  readonly keys: ReadonlyMap<string, string>;
  /** True if the document's providers replace those of the environment. */
  readonly hasProviders: boolean;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Says in a problem or a warning that a setting came from the document. */
export const FROM_STORE = 'object store: ';

/**
 * Variables that the document may not set: the place of the document and of the data, which are
 * known before it is read, and certification test mode, which only the operator of the machine
 * turns on.
 */
const FORBIDDEN =
  /^(?:certification_test_token|certification_host|database_url|data_dir|s3_config(?:_.*)?)$/;

/** The variable of each key. Variables of the AWS SDK and objects of the document are left out. */
const KEYS = new Map(
  [...VARIABLES.values()]
    .filter(({ name }) => /^(?:SVC_(?!TLS_|IDPS$)|RUST_|OTEL_)/.test(name))
    .map((row) => [row.name.replace(/^SVC_/, '').toLowerCase(), row]),
);
const KNOWN = [...KEYS.keys(), 'tls', 'idps'];

/** The variable of each key of a provider, without its prefix. */
const PROVIDER_KEYS = new Map(
  [...PROVIDER_VARIABLES.values()].map((row) => [row.name.toLowerCase(), row]),
);
const KNOWN_OF_PROVIDER = ['id', ...PROVIDER_KEYS.keys()];

/** Returns the settings of a document. */
export function settingsOf(document: Readonly<Record<string, unknown>>): DocumentSettings {
  const settings = new CollectedSettings();
  for (const [key, value] of Object.entries(document)) {
    const row = KEYS.get(key);
    if (FORBIDDEN.test(key)) settings.problems.push(forbidden(key));
    else if (key === 'tls') addTls(settings, value);
    else if (key === 'idps') addProviders(settings, value);
    else if (row === undefined) settings.unknown(key, KNOWN);
    else settings.add(key, row.name, row.shape, value);
  }
  return settings;
}

function forbidden(key: string): string {
  return `SVC_S3_CONFIG_KEY: the document may not set ${key}; set its variable`;
}

/**
 * The unknown keys that are named. A document of 1 MiB has tens of thousands, and each costs a
 * search and a line of the log.
 */
const MOST_WARNINGS = 20;

class CollectedSettings implements DocumentSettings {
  readonly variables: Record<string, string> = {};
  readonly keys = new Map<string, string>();
  hasProviders = false;
  readonly problems: string[] = [];
  readonly warnings: string[] = [];

  /** Adds the variable of a key, or the problem of its value. */
  add(key: string, variable: string, shape: z.ZodType, value: unknown): void {
    this.keys.set(variable, key);
    const form = jsonFormOf(shape);
    const mustBePem = form === 'pem' || key.startsWith('tls.');
    const read = asVariable(value, form);
    if ('problem' in read) this.problem(key, read.problem);
    else if (mustBePem && read.text !== '' && !isPem(read.text)) this.problem(key, NOT_PEM);
    else this.variables[variable] = read.text;
  }

  problem(key: string, text: string): void {
    this.problems.push(`${FROM_STORE}${key}: ${text}`);
  }

  unknown(key: string, known: readonly string[], prefix = ''): void {
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

const TLS_KEYS = Object.keys(TABLE.http.tls);

/** Adds `tls: {cert, key}`: both, as PEM or base64 of PEM. */
function addTls(settings: CollectedSettings, value: unknown): void {
  if (!isObject(value)) return settings.problem('tls', 'must be an object of cert and key');
  for (const key of Object.keys(value)) {
    if (!TLS_KEYS.includes(key)) settings.unknown(key, TLS_KEYS, 'tls.');
  }
  for (const [name, row] of Object.entries(TABLE.http.tls)) {
    const given = value[name] ?? '';
    settings.add(`tls.${name}`, row.name, row.shape, given);
    if (given === '') settings.problem(`tls.${name}`, 'is required');
  }
}

const SLUG = /^(?!-)[a-z0-9-]{1,32}(?<!-)$/;

/** Adds `idps`, each as the variables of one provider. */
function addProviders(settings: CollectedSettings, value: unknown): void {
  settings.hasProviders = true;
  settings.keys.set('SVC_IDPS', 'idps');
  const providers: readonly unknown[] = Array.isArray(value) ? value : [];
  if (providers.length === 0) settings.problem('idps', 'must be an array of one object or more');
  const slugs = providers.map((provider, at) => addProvider(settings, provider, `idps[${at}]`));
  settings.variables['SVC_IDPS'] = slugs.filter((slug) => slug !== undefined).join(',');
}

/** Adds one provider, and returns its slug; undefined if it has none. */
function addProvider(
  settings: CollectedSettings,
  provider: unknown,
  at: string,
): string | undefined {
  if (!isObject(provider)) {
    settings.problem(at, 'must be an object');
    return undefined;
  }
  const slug = provider['id'];
  if (typeof slug !== 'string' || !SLUG.test(slug)) {
    settings.problem(`${at}.id`, slug === undefined ? 'is required' : 'is malformed');
    return undefined;
  }
  for (const [key, { name }] of PROVIDER_KEYS) {
    settings.keys.set(providerVariable(slug, name), `${at}.${key}`);
  }
  for (const [key, value] of Object.entries(provider)) {
    const row = PROVIDER_KEYS.get(key);
    if (row) settings.add(`${at}.${key}`, providerVariable(slug, row.name), row.shape, value);
    else if (key !== 'id') settings.unknown(key, KNOWN_OF_PROVIDER, `${at}.`);
  }
  return slug;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
