import { ENVIRONMENT, PROVIDER_SHAPES, type Environment } from '#platform/config/environment.js';
import { nameOfSlug, PROVIDER_VARIABLES } from '#platform/config/provider-settings.js';
import { toSingleLine } from '#platform/text/single-line.js';
import { editDistance } from '#platform/config/unknown-variables.js';
import type { ConfigurationDocument } from './document.js';
import { asVariable, isPem, jsonFormOf, NOT_PEM } from './json-value.js';

/** The settings of a document as variables. A problem names the key, never its value. */
export interface DocumentSettings {
  readonly variables: Environment;
  /** The key of each variable that the document sets or, within an object, could set: `SVC_TLS_CERT` is `tls.cert`. */
  readonly keys: ReadonlyMap<string, string>;
  /** True if the document's providers replace those of the environment. */
  readonly hasProviders: boolean;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Says in a problem or a warning that a setting came from the document. */
export const FROM_STORE = 'object store: ';

/**
 * Variables that the document may not set: the place of the document and of the data, which are known before it is read, and
 * certification test mode, which only the operator of the machine turns on.
 */
const FORBIDDEN =
  /^(?:certification_test_token|certification_host|database_url|data_dir|s3_config(?:_.*)?)$/;

/** Each key of the document with its variable. Variables of the AWS SDK and objects of the document are left out. */
const VARIABLES: ReadonlyMap<string, string> = new Map(
  Object.keys(ENVIRONMENT.shape)
    .filter((name) => /^(?:SVC_(?!TLS_|IDPS$)|RUST_|OTEL_)/.test(name))
    .map((name) => [name.replace(/^SVC_/, '').toLowerCase(), name]),
);
const KEYS = [...VARIABLES.keys(), 'tls', 'idps'];

const SHAPES: Readonly<Record<string, unknown>> = ENVIRONMENT.shape;

/** The shape of each key of a provider. */
const PROVIDER_KEY_SHAPES: ReadonlyMap<string, unknown> = new Map(
  Object.entries(PROVIDER_SHAPES).map(([name, shape]) => [name.toLowerCase(), shape]),
);

/** Returns the settings of a document. */
export function settingsOf(document: ConfigurationDocument): DocumentSettings {
  const settings = new CollectedSettings();
  for (const [key, value] of document) {
    const variable = VARIABLES.get(key);
    if (FORBIDDEN.test(key)) settings.problems.push(forbidden(key));
    else if (key === 'tls') addTls(settings, value);
    else if (key === 'idps') addProviders(settings, value);
    else if (variable === undefined) settings.unknown(key, KEYS);
    else settings.add(key, variable, value);
  }
  return settings;
}

function forbidden(key: string): string {
  return `SVC_S3_CONFIG_KEY: the document may not set ${key}; set its variable`;
}

/** The unknown keys that are named. A document of 1 MiB has tens of thousands, and each costs a search and a line of the log. */
const MOST_WARNINGS = 20;

class CollectedSettings implements DocumentSettings {
  readonly variables: Record<string, string> = {};
  readonly keys = new Map<string, string>();
  hasProviders = false;
  readonly problems: string[] = [];
  readonly warnings: string[] = [];

  /** Adds the variable of a key, or the problem of its value. */
  add(key: string, variable: string, value: unknown, shape = SHAPES[variable]): void {
    this.keys.set(variable, key);
    const form = jsonFormOf(shape);
    const read = asVariable(value, form);
    if ('problem' in read) this.problem(key, read.problem);
    else if (form === 'pem' && read.text !== '' && !isPem(read.text)) this.problem(key, NOT_PEM);
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

const TLS_KEYS: readonly string[] = ['cert', 'key'];

/** Adds `tls: {cert, key}`: both, as PEM or base64 of PEM. */
function addTls(settings: CollectedSettings, value: unknown): void {
  if (!isObject(value)) return settings.problem('tls', 'must be an object of cert and key');
  for (const key of Object.keys(value)) {
    if (!TLS_KEYS.includes(key)) settings.unknown(key, TLS_KEYS, 'tls.');
  }
  for (const name of TLS_KEYS) {
    const [key, variable] = [`tls.${name}`, `SVC_TLS_${name.toUpperCase()}`];
    const read = asVariable(value[name] ?? '', undefined);
    settings.keys.set(variable, key);
    if ('problem' in read) settings.problem(key, read.problem);
    else if (read.text === '') settings.problem(key, 'is required');
    else if (!isPem(read.text)) settings.problem(key, NOT_PEM);
    else settings.variables[variable] = read.text;
  }
}

const PROVIDER_KEYS = ['id', ...PROVIDER_VARIABLES.map((name) => name.toLowerCase())];
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

/** Adds one provider, and returns its slug; undefined where it has none. */
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
  for (const name of PROVIDER_VARIABLES) {
    settings.keys.set(`SVC_IDP_${nameOfSlug(slug)}_${name}`, `${at}.${name.toLowerCase()}`);
  }
  for (const [key, value] of Object.entries(provider)) {
    if (key === 'id') continue;
    if (!PROVIDER_KEYS.includes(key)) settings.unknown(key, PROVIDER_KEYS, `${at}.`);
    else {
      const variable = `SVC_IDP_${nameOfSlug(slug)}_${key.toUpperCase()}`;
      settings.add(`${at}.${key}`, variable, value, PROVIDER_KEY_SHAPES.get(key));
    }
  }
  return slug;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
