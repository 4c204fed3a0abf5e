import type { z } from 'zod';
import type { OidcProviderConfig, ProviderConfig, SamlProviderConfig } from './config.js';
import {
  ENVIRONMENT,
  PROVIDER_ENVIRONMENT,
  PROVIDER_SHAPES,
  type Environment,
} from './environment.js';

/** The names after the prefix `SVC_IDP_<SLUG>_`, of providers of every type. */
export const PROVIDER_VARIABLES: readonly string[] = Object.keys(PROVIDER_SHAPES);

/** The configured providers in their order, and their problems. */
export interface LoadedProviders {
  readonly providers: readonly ProviderConfig[];
  readonly problems: readonly string[];
}

/** Reads the settings of each upstream provider, and collects their problems. */
export function loadProviders(environment: Environment): LoadedProviders {
  const slugs = ENVIRONMENT.shape.SVC_IDPS.safeParse(environment['SVC_IDPS']);
  if (!slugs.success) return { providers: [], problems: [] }; // the schema reports this problem
  const providers: ProviderConfig[] = [];
  const problems: string[] = [];
  for (const slug of slugs.data) {
    const provider = loadProvider(slug, environment);
    if ('problems' in provider) problems.push(...provider.problems);
    else providers.push(provider);
  }
  return { providers, problems };
}

/** Names a provider as its variables do: `corp-saml` is `CORP_SAML`. */
export function nameOfSlug(slug: string): string {
  return slug.replaceAll('-', '_').toUpperCase();
}

/** Names a variable of a provider: `SVC_IDP_CORP_SAML_METADATA_URL`. */
export function providerVariable(slug: string, name: keyof typeof PROVIDER_SHAPES): string {
  return `SVC_IDP_${nameOfSlug(slug)}_${name}`;
}

function loadProvider(
  slug: string,
  environment: Environment,
): ProviderConfig | { readonly problems: readonly string[] } {
  const prefix = `SVC_IDP_${nameOfSlug(slug)}_`;
  const own = Object.fromEntries(PROVIDER_VARIABLES.map((key) => [key, environment[prefix + key]]));
  const type = PROVIDER_SHAPES.TYPE.safeParse(own['TYPE']);
  if (!type.success) {
    const problem = own['TYPE'] === undefined ? 'is required' : 'must be oidc or saml';
    return { problems: [`${prefix}TYPE: ${problem}`] };
  }
  const foreign = foreignVariables(type.data, own).map(
    (key) => `${prefix}${key}: has no meaning for a provider of the type ${type.data}`,
  );
  const parsed =
    type.data === 'oidc' ? oidcProvider(slug, own) : samlProvider(slug, own, environment);
  if ('error' in parsed) return { problems: [...problemLines(parsed.error, prefix), ...foreign] };
  return foreign.length > 0 ? { problems: foreign } : parsed;
}

/** Writes the issues of a parsed environment as lines: the variable's name and the problem, never its value. */
export function problemLines(error: z.ZodError, prefix = ''): string[] {
  const lines = error.issues.map((issue) => {
    const missing = issue.code === 'invalid_type' && issue.message.includes('received undefined');
    return `${prefix}${String(issue.path[0])}: ${missing ? 'is required' : issue.message}`;
  });
  return [...new Set(lines)];
}

/** Lists the variables that are set and that only providers of the other type have. */
function foreignVariables(type: keyof typeof PROVIDER_ENVIRONMENT, own: Environment): string[] {
  const { shape } = PROVIDER_ENVIRONMENT[type];
  return Object.keys(own).filter((key) => own[key] !== undefined && !Object.hasOwn(shape, key));
}

function oidcProvider(slug: string, own: Environment) {
  const { data, error } = PROVIDER_ENVIRONMENT.oidc.safeParse(own);
  if (!data) return { error };
  const {
    TYPE: type,
    NAME,
    ISSUER: issuer,
    CLIENT_ID: clientId,
    CLIENT_SECRET: clientSecret,
    DOMAINS: domains,
  } = data;
  return {
    slug,
    type,
    name: NAME ?? slug,
    issuer,
    clientId,
    clientSecret,
    domains,
  } satisfies OidcProviderConfig;
}

function samlProvider(slug: string, own: Environment, environment: Environment) {
  const { data, error } = PROVIDER_ENVIRONMENT.saml.safeParse(own);
  if (!data) return { error };
  const base = ENVIRONMENT.shape.SVC_BASE_URL.safeParse(environment['SVC_BASE_URL']);
  const { TYPE: type, NAME, METADATA_URL: metadataUrl, SP_ENTITY_ID } = data;
  return {
    slug,
    type,
    name: NAME ?? slug,
    metadataUrl,
    spEntityId: SP_ENTITY_ID ?? `${base.data ?? ''}/saml/metadata`,
    emailAttribute: data.EMAIL_ATTRIBUTE,
    domainAttribute: data.DOMAIN_ATTRIBUTE,
    domains: data.DOMAINS,
  } satisfies SamlProviderConfig;
}
