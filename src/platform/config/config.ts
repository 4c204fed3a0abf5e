import type { TlsSource } from '#platform/tls/tls-material.js';

/** Which models may enroll (SVC_ALLOWED_AAGUIDS): any with a valid chain, a named table, or a list of AAGUIDs. */
export type AaguidPolicy =
  | { readonly kind: 'any' }
  | { readonly kind: 'fips-only' }
  | { readonly kind: 'yubikey-5' }
  | { readonly kind: 'list'; readonly aaguids: ReadonlySet<string> };

/** One upstream OpenID Connect provider (SVC_IDP_<SLUG>_*). */
export interface OidcProviderConfig {
  readonly slug: string;
  readonly type: 'oidc';
  /** The label of its button. */
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Everything an operator may set, validated and frozen; a provider takes the slice it needs. */
export interface Config {
  readonly http: {
    /** The public origin and OIDC issuer, without a trailing slash. */
    readonly baseUrl: string;
    /** Where it listens without TLS. */
    readonly listen: { readonly host: string; readonly port: number };
    /** Undefined: a proxy ends TLS, or nobody does. */
    readonly tls: TlsSource | undefined;
    /** The listener that asks for client certificates: there whenever TLS is. */
    readonly mtls: {
      readonly port: number;
      /** Authorities of client certificates, PEM. None: only self-signed ones can mean anything. */
      readonly clientCaCerts: readonly string[];
    };
    /** CIDR list of proxies whose X-Forwarded-For is believed. */
    readonly trustedProxies: readonly string[];
    readonly corsOrigins: readonly string[];
  };
  readonly relyingParty: {
    readonly id: string;
    readonly name: string;
    /** Shown on the pages. */
    readonly organizationName: string;
  };
  readonly database: {
    /** Unset: the embedded server. */
    readonly url: string | undefined;
    readonly dataDir: string;
    readonly maxConnections: number;
  };
  readonly secrets: {
    /** The root secret; every use derives its own key. */
    readonly root: string;
    /** Still accepted for verifying and decrypting. */
    readonly previousRoot: string | undefined;
  };
  readonly upstream: {
    readonly providers: readonly OidcProviderConfig[];
    /** Extra certificate authorities for upstream fetches, PEM. */
    readonly extraCaCerts: readonly string[];
  };
  readonly enrollment: {
    /** Lower-cased e-mail domains that may enroll; undefined allows any. */
    readonly allowedDomains: ReadonlySet<string> | undefined;
    /** Lower-cased e-mails that alone may become an organization's admin; undefined: whoever comes first. */
    readonly bootstrapAdmins: ReadonlySet<string> | undefined;
    readonly allowedAaguids: AaguidPolicy;
  };
  readonly session: { readonly hours: number };
  /** Certification test mode is on exactly where there is a token. */
  readonly certification: { readonly token: string | undefined };
  readonly oidc: {
    /** PEM blocks of each kind, the signing private key first; undefined: the database keeps one. */
    readonly signingKeys: {
      readonly ec: readonly string[] | undefined;
      readonly rsa: readonly string[] | undefined;
    };
    readonly deviceCode: { readonly expiresSeconds: number; readonly pollIntervalSeconds: number };
  };
  readonly ssh: {
    /** The CA's private key itself, or else the file that holds it. */
    readonly caKey: string | undefined;
    readonly caKeyPath: string;
    readonly principals: ReadonlySet<'email' | 'username'>;
  };
  readonly cleanUp: {
    /** 0: never. */
    readonly intervalSeconds: number;
    /** How long audit events of a class are kept; administrative ones are kept for ever. */
    readonly retentionDays: { readonly auth: number; readonly oauth: number };
  };
  readonly log: {
    readonly format: 'text' | 'json';
    /** RUST_LOG directives: `info,security=warn,svc_server::scim=debug`. */
    readonly filter: string;
  };
  /** Without a token nobody can read the metrics. */
  readonly metrics: { readonly bearerToken: string | undefined };
  /** Undefined: nothing is traced. */
  readonly tracing: TracingConfig | undefined;
}

/** Where spans go. */
export interface TracingConfig {
  /** The OTLP collector: spans go to `/v1/traces` below it. */
  readonly endpoint: string;
  readonly serviceName: string;
}

/** The injection token of the frozen {@link Config}. */
export const CONFIG = Symbol('Config');
