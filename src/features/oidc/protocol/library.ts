/**
 * The parts of `oidc-provider` that this feature uses: the types of its objects, and the error
 * classes that it renders as OAuth errors. All other files of the feature import them from this
 * file, except for the two files of `engine/` that README.md names.
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
