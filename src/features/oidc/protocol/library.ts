/**
 * The names of `oidc-provider` that this feature uses: the types of its objects, and the error
 * classes that it renders as OAuth errors. Every other file imports them from here; README.md names
 * the two files of engine/ that import the library.
 */
export { errors, ExternalSigningKey } from 'oidc-provider';
export type {
  AccessToken,
  Account,
  AccountClaims,
  Adapter,
  AdapterPayload,
  Client,
  ClientAuthMethod,
  ClientMetadata,
  Configuration,
  ErrorOut,
  Grant,
  KoaContextWithOIDC,
  Provider,
  ResourceServer,
  ResourceServerInstance,
  TokenEndpointGrantContext,
} from 'oidc-provider';
