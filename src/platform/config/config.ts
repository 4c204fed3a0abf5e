import type { TlsSource } from '#platform/tls/tls-material.js';
import type { PROVIDERS } from './table/providers.js';
import type { TABLE } from './table/table.js';
import type { KmsKeyUse, Values } from './table/variable.js';

/** The values of the table as an operator gave them, or their defaults. */
export type Settings = Values<typeof TABLE>;

/**
 * The settings of one upstream provider (SVC_IDP_<SLUG>_*), with its slug and the label of its
 * button.
 */
type ProviderOf<Type extends keyof typeof PROVIDERS> = Omit<
  Values<(typeof PROVIDERS)[Type]>,
  'type' | 'name'
> & { readonly type: Type; readonly slug: string; readonly name: string };

/** One upstream OpenID Connect provider. */
export type OidcProviderConfig = ProviderOf<'oidc'>;

/** One upstream SAML provider. */
export type SamlProviderConfig = Omit<ProviderOf<'saml'>, 'spEntityId'> & {
  /** The entity id of this service at the provider. */
  readonly spEntityId: string;
};

/** One upstream provider of either type. */
export type ProviderConfig = OidcProviderConfig | SamlProviderConfig;

/** A key in AWS KMS that a variable names. */
export interface KmsKeySetting {
  readonly variable: string;
  /** An id, an ARN or an alias. */
  readonly keyId: string;
  readonly use: KmsKeyUse;
}

/** An object of which no value is undefined. */
export type Whole<T> = { readonly [Key in keyof T]: Exclude<T[Key], undefined> };

/** The GitHub App, on github.com or a GitHub Enterprise Server. */
export type GitHubSettings = Whole<Settings['github']>;

/** The destination of spans: they go to `/v1/traces` below the endpoint. */
export type TracingConfig = Whole<Omit<Settings['tracing'], 'protocol'>>;

/** A validated configuration whose root secret may still have to be asked of KMS. */
export interface ValidConfig extends Omit<
  Settings,
  'http' | 'relyingParty' | 'kms' | 'upstream' | 'ssh' | 'github' | 'tracing'
> {
  readonly http: Omit<Settings['http'], 'tls'> & {
    /** Undefined: a proxy ends TLS, or there is no TLS. */
    readonly tls: TlsSource | undefined;
  };
  readonly relyingParty: Whole<Settings['relyingParty']>;
  readonly kms: { readonly keys: readonly KmsKeySetting[]; readonly endpoint: string | undefined };
  readonly upstream: {
    readonly providers: readonly ProviderConfig[];
    readonly extraCaCerts: readonly string[];
  };
  readonly ssh: Settings['ssh'] & { readonly caKeyPath: string };
  /** Undefined: no GitHub App is configured. */
  readonly github: GitHubSettings | undefined;
  /** Undefined: tracing is off. */
  readonly tracing: TracingConfig | undefined;
}

/** The operator's settings, validated and frozen. A provider takes the part that it needs. */
export interface Config extends Omit<ValidConfig, 'secrets'> {
  /**
   * The root secret, from which each purpose derives a key, and the one before it, which still
   * opens data.
   */
  readonly secrets: { readonly root: string; readonly previousRoot: string | undefined };
}

/** The injection token of the frozen {@link Config}. */
export const CONFIG = Symbol('Config');
