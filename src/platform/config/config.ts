import { join } from 'node:path';
import type { PROVIDERS } from './table/providers.js';
import { TABLE } from './table/settings.js';
import { valueOf, type Frozen, type KmsKeyUse, type Values } from './table/variable.js';

/** The values of all settings in `TABLE`, as an operator gave them, or their defaults. */
type Settings = Values<typeof TABLE>;

/**
 * The settings of one upstream identity provider (SVC_IDP_<SLUG>_*), with its slug and the label of
 * its sign-in button.
 */
type ProviderOf<Type extends keyof typeof PROVIDERS> = Omit<
  Values<(typeof PROVIDERS)[Type]>,
  'type' | 'name'
> & { readonly type: Type; readonly slug: string; readonly name: string };

/** The settings of an upstream provider whose SVC_IDP_<SLUG>_TYPE is `oidc`. */
export type OidcProviderConfig = ProviderOf<'oidc'>;
/** The settings of an upstream SAML provider, with the entity id that names this service there. */
export type SamlProviderConfig = ProviderOf<'saml'> & { readonly spEntityId: string };
/** The settings of an upstream provider of either type. */
export type ProviderConfig = OidcProviderConfig | SamlProviderConfig;

/** A key in AWS KMS, and the variable that names it by an id, an ARN or an alias. */
export interface KmsKeySetting {
  readonly variable: string;
  readonly keyId: string;
  readonly use: KmsKeyUse;
}

/** Returns settings that have an effect only together; undefined if one of them is missing. */
function whole<T extends object>(settings: T) {
  const isWhole = Object.values(settings).every((value) => value !== undefined);
  return isWhole ? (settings as { [Key in keyof T]: Exclude<T[Key], undefined> }) : undefined;
}

/** Arranges the settings as the configuration, and adds defaults that depend on other settings. */
export function arrange(
  settings: Settings,
  providers: readonly ProviderConfig[],
  kmsKeys: readonly KmsKeySetting[],
) {
  const { http, relyingParty, kms, upstream, ssh, github } = settings;
  const { endpoint, serviceName } = settings.tracing;
  const isPublicApi = github.apiUrl === valueOf(TABLE.github.apiUrl, {});
  const webUrl = isPublicApi ? 'https://github.com' : new URL(github.apiUrl).origin;
  return {
    ...settings,
    /** The certificate and its private key; undefined if a proxy terminates TLS, or without TLS. */
    http: { ...http, tls: whole(http.tls) },
    relyingParty: {
      id: relyingParty.id ?? new URL(http.baseUrl).hostname,
      name: relyingParty.name,
      organizationName: relyingParty.organizationName ?? relyingParty.name,
    },
    kms: { keys: kmsKeys, endpoint: kms.endpoint ?? kms.anyEndpoint },
    upstream: { providers, extraCaCerts: upstream.extraCaCerts },
    ssh: { ...ssh, caKeyPath: ssh.caKeyPath ?? join(settings.database.dataDir, 'ssh_ca_key') },
    /** The GitHub App, on github.com or a GitHub Enterprise Server; undefined if no app is set. */
    github: whole({ ...github, webUrl: github.webUrl ?? webUrl }),
    /** Spans are sent to `/v1/traces` below the endpoint. Undefined turns tracing off. */
    tracing: whole({ endpoint, serviceName }),
  };
}

/** A validated configuration. Its root secret is undefined if AWS KMS still has to derive it. */
export type ValidConfig = Frozen<ReturnType<typeof arrange>>;

/** The operator's settings, validated and frozen. A class of Nest takes the part that it needs. */
export interface Config extends Omit<ValidConfig, 'secrets'> {
  /**
   * The root secret, from which the key of each purpose is derived, and the previous root secret.
   * The previous one still decrypts data that was encrypted under it.
   */
  readonly secrets: { readonly root: string; readonly previousRoot: string | undefined };
}

export type GitHubSettings = NonNullable<Config['github']>;
export type TracingConfig = NonNullable<Config['tracing']>;

/** The injection token of the frozen {@link Config}. */
export const CONFIG = Symbol('Config');
