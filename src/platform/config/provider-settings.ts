import type { ProviderConfig } from './config.js';
import type { Environment } from './environment.js';
import { PROVIDERS } from './table/providers.js';
import { TABLE } from './table/table.js';
import { readTable, rowsOf, type Variable } from './table/variable.js';

/** The variables of providers of every type, by the name after the prefix `SVC_IDP_<SLUG>_`. */
export const PROVIDER_VARIABLES: ReadonlyMap<string, Variable> = new Map(
  Object.values(PROVIDERS)
    .flatMap(rowsOf)
    .map((row) => [row.name, row]),
);

/** The configured providers in their order, and their problems. */
export interface LoadedProviders {
  readonly providers: readonly ProviderConfig[];
  readonly problems: readonly string[];
}

/** Returns the slugs of SVC_IDPS; none if the list is malformed, which is a problem of its own. */
export function slugsOf(environment: Environment): readonly string[] {
  return TABLE.upstream.slugs.shape.safeParse(environment['SVC_IDPS']).data ?? [];
}

/** Names a provider as its variables do: `corp-saml` is `CORP_SAML`. */
export function nameOfSlug(slug: string): string {
  return slug.replaceAll('-', '_').toUpperCase();
}

/** Names a variable of a provider: `SVC_IDP_CORP_SAML_METADATA_URL`. */
export function providerVariable(slug: string, name: string): string {
  return `SVC_IDP_${nameOfSlug(slug)}_${name}`;
}

/** Reads the settings of each upstream provider, and collects their problems. */
export function loadProviders(environment: Environment): LoadedProviders {
  const read = slugsOf(environment).map((slug) => loadProvider(slug, environment));
  return {
    providers: read.flatMap(({ provider }) => provider ?? []),
    problems: read.flatMap(({ problems }) => problems),
  };
}

function loadProvider(
  slug: string,
  environment: Environment,
): { readonly provider?: ProviderConfig; readonly problems: readonly string[] } {
  const prefix = providerVariable(slug, '');
  const type = environment[`${prefix}TYPE`];
  if (type !== 'oidc' && type !== 'saml') {
    const problem = type === undefined ? 'is required' : 'must be oidc or saml';
    return { problems: [`${prefix}TYPE: ${problem}`] };
  }
  const own = new Set(rowsOf(PROVIDERS[type]).map(({ name }) => name));
  const foreign = [...PROVIDER_VARIABLES.keys()]
    .filter((name) => !own.has(name) && environment[prefix + name] !== undefined)
    .map((name) => `${prefix}${name}: has no meaning for a provider of the type ${type}`);
  const { values, problems } = readTable(PROVIDERS[type], environment, prefix);
  if (!values || foreign.length > 0) return { problems: [...problems, ...foreign] };
  const common = { slug, name: values.name ?? slug };
  if ('issuer' in values) return { provider: { ...values, ...common, type: 'oidc' }, problems };
  const base = TABLE.http.baseUrl.shape.safeParse(environment['SVC_BASE_URL']).data ?? '';
  const spEntityId = values.spEntityId ?? `${base}/saml/metadata`;
  return { provider: { ...values, ...common, type: 'saml', spEntityId }, problems };
}
