import type { ProviderConfig } from './config.js';
import type { Environment } from './environment.js';
import { PROVIDER_VARIABLES, PROVIDERS } from './table/providers.js';
import { TABLE } from './table/settings.js';
import { readTable, rowsOf, valueOf } from './table/variable.js';

/** Returns the slugs of SVC_IDPS; none for a malformed list, which another check reports. */
export function slugsOf(environment: Environment): readonly string[] {
  return valueOf(TABLE.upstream.slugs, environment) ?? [];
}

/** Returns the name of a provider's variable: `SVC_IDP_CORP_NAME` for the slug `corp`. */
export function providerVariable(slug: string, name: string): string {
  return `SVC_IDP_${slug.replaceAll('-', '_').toUpperCase()}_${name}`;
}

/** An identity provider if its settings are right, and otherwise the problems of its settings. */
interface LoadedProvider {
  readonly provider?: ProviderConfig;
  readonly problems: readonly string[];
}

/** Reads the settings of each provider in the order of SVC_IDPS, with their problems. */
export function loadProviders(environment: Environment) {
  return slugsOf(environment).map((slug) => loadProvider(slug, environment));
}

function loadProvider(slug: string, environment: Environment): LoadedProvider {
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
  const base = valueOf(TABLE.http.baseUrl, environment) ?? '';
  const spEntityId = values.spEntityId ?? `${base}/saml/metadata`;
  return { provider: { ...values, ...common, type: 'saml', spEntityId }, problems };
}
