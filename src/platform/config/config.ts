import type { TlsSource } from '#platform/tls/tls-material.js';
import type { AaguidPolicy } from '#platform/config/shapes/setting-shapes.js';

/** One upstream OpenID Connect provider (SVC_IDP_<SLUG>_*). */
export interface OidcProviderConfig {
  readonly slug: string;
  readonly type: 'oidc';
  /** The label of its button. */
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The only domains that the provider may vouch for, `*.` before one for its subdomains; undefined: every domain. */
  readonly domains: readonly string[] | undefined;
}

/** The use of a key in AWS KMS, which decides its type: signatures by named algorithms, the root secret, or data keys. */
export type KmsKeyUse = 'ES256' | 'RS256' | 'Ed25519 or ES256' | 'HMAC' | 'data keys';

/** A key in AWS KMS that a variable names. */
export interface KmsKeySetting {
  readonly variable: string;
  /** An id, an ARN or an alias. */
  readonly keyId: string;
  readonly use: KmsKeyUse;
}

/** One upstream SAML provider (SVC_IDP_<SLUG>_*). */
export interface SamlProviderConfig {
  readonly slug: string;
  readonly type: 'saml';
  /** The label of its button. */
  readonly name: string;
  readonly metadataUrl: string;
  /** The entity id of this service at the provider. */
  readonly spEntityId: string;
  /** The attribute with the e-mail address; undefined: the NameID has it. */
  readonly emailAttribute: string | undefined;
  /** The attribute with the domain of the organization; undefined: the e-mail address has it. */
  readonly domainAttribute: string | undefined;
  /** The only domains that the provider may vouch for, `*.` before one for its subdomains; undefined: every domain. */
  readonly domains: readonly string[] | undefined;
}

/** One upstream provider of either type. */
export type ProviderConfig = OidcProviderConfig | SamlProviderConfig;

/** The operator's settings, validated and frozen. A provider takes the part that it needs. */
export interface Config {
  readonly http: {
    /** The public origin and OIDC issuer, without a trailing slash. */
    readonly baseUrl: string;
    /** The address of the listener without TLS. */
    readonly listen: { readonly host: string; readonly port: number };
    /** Undefined: a proxy ends TLS, or there is no TLS. */
    readonly tls: TlsSource | undefined;
    /** The listener that requests client certificates; it exists if TLS is on. */
    readonly mtls: {
      readonly port: number;
      /** Authorities of client certificates, PEM. Without any, only self-signed certificates can be registered. */
      readonly clientCaCerts: readonly string[];
    };
    /** Networks (CIDR) of proxies whose X-Forwarded-For is trusted. */
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
    /**
     * How the standbys of the database replicate, as the operator says it. It decides what a change of the database runs by
     * itself: `synchronous` reconciles only with proof of a loss, `asynchronous` on every new timeline. Unset: with proof, and if
     * no replica can tell whether something was lost.
     */
    readonly failover: 'synchronous' | 'asynchronous' | undefined;
  };
  readonly secrets: {
    /** The root secret. Each purpose derives a key from it. */
    readonly root: string;
    /** The previous root secret, which still verifies and decrypts. */
    readonly previousRoot: string | undefined;
  };
  readonly upstream: {
    readonly providers: readonly ProviderConfig[];
    /** Extra certificate authorities for upstream fetches, PEM. */
    readonly extraCaCerts: readonly string[];
  };
  readonly kms: {
    /** Every key that a variable names. */
    readonly keys: readonly KmsKeySetting[];
    /** Undefined: the address of AWS for the region. */
    readonly endpoint: string | undefined;
  };
  readonly documentKey: {
    /** The keys of KMS that wrap document keys: the first one wraps new ones. Without any, no organization has an issuer. */
    readonly kmsKeyIds: readonly string[];
  };
  readonly enrollment: {
    /** Lower-cased e-mail domains that may enroll; undefined allows any. */
    readonly allowedDomains: ReadonlySet<string> | undefined;
    /** Lower-case e-mail addresses that alone may become an organization's first admin; undefined: its first user. */
    readonly bootstrapAdmins: ReadonlySet<string> | undefined;
    readonly allowedAaguids: AaguidPolicy;
  };
  readonly session: { readonly hours: number };
  /** Certification test mode is on if there is a token. */
  readonly certification: { readonly token: string | undefined };
  readonly oidc: {
    /** PEM blocks of each kind, the signing private key first unless KMS signs; undefined: the database keeps one. */
    readonly signingKeys: {
      readonly ec: readonly string[] | undefined;
      readonly rsa: readonly string[] | undefined;
    };
    /** Keys in KMS of each kind, the one that signs first. They come before the PEM blocks. */
    readonly signingKmsKeyIds: { readonly ec: readonly string[]; readonly rsa: readonly string[] };
    readonly deviceCode: { readonly expiresSeconds: number; readonly pollIntervalSeconds: number };
  };
  readonly ssh: {
    /** The CA's keys in AWS KMS, the one that signs first. */
    readonly caKmsKeyIds: readonly string[];
    /** The CA's keys themselves, or else the file that holds them. They follow those in KMS. */
    readonly caKey: string | undefined;
    readonly caKeyPath: string;
    readonly principals: ReadonlySet<'email' | 'username'>;
    /** The domain whose organization has the user names; undefined: the only organization of the deployment has them. */
    readonly principalsDomain: string | undefined;
    /** Whether only keys that are proven to live in a security key get certificates. */
    readonly requireSecurityKey: boolean;
  };
  /** The audience of the tokens for AWS. */
  readonly aws: { readonly audience: string };
  /** Undefined: no GitHub App is configured. */
  readonly github: GitHubSettings | undefined;
  readonly cleanUp: {
    /** 0: never. */
    readonly intervalSeconds: number;
    /** The retention of audit events by class. Administrative events are never deleted. */
    readonly retentionDays: { readonly auth: number; readonly oauth: number };
  };
  readonly log: {
    readonly format: 'text' | 'json';
    /** RUST_LOG directives: `info,security=warn,svc_server::scim=debug`. */
    readonly filter: string;
  };
  /** The URI at which vulnerabilities are reported (RFC 9116). Undefined: `security.txt` does not exist. */
  readonly securityContact: string | undefined;
  /** Without a token the metrics cannot be read. */
  readonly metrics: { readonly bearerToken: string | undefined };
  /** Undefined: tracing is off. */
  readonly tracing: TracingConfig | undefined;
}

/** The GitHub App (SVC_GITHUB_*), on github.com or a GitHub Enterprise Server. */
export interface GitHubSettings {
  readonly appId: string;
  /** The private key of the App: PEM, PKCS#8. */
  readonly appKey: string;
  /** The name of the App in addresses, as in `https://github.com/apps/{name}`. */
  readonly appName: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly webhookSecret: string;
  /** The address of the REST API, without a trailing slash. */
  readonly apiUrl: string;
  /** The origin of the pages and of Git over HTTPS. */
  readonly webUrl: string;
}

/** The destination of spans. */
export interface TracingConfig {
  /** The OTLP collector: spans go to `/v1/traces` below it. */
  readonly endpoint: string;
  readonly serviceName: string;
}

/** The sources of the root secret: a text, or else a key in KMS, which is asked at start-up. */
export interface RootSecretSource {
  readonly root: string | undefined;
  readonly kmsKeyId: string | undefined;
  /** The same of the previous root secret, where there is one. */
  readonly previousRoot: string | undefined;
  readonly previousKmsKeyId: string | undefined;
}

/** A validated configuration whose root secret may still have to be asked of KMS. */
export interface ValidConfig extends Omit<Config, 'secrets'> {
  readonly secrets: RootSecretSource;
}

/** The injection token of the frozen {@link Config}. */
export const CONFIG = Symbol('Config');
