import type { OidcProviderConfig } from '#platform/config/config.js';
import { OidcUpstream } from './oidc-upstream.js';
import type { UpstreamHttp } from './upstream-http.js';
import type { UpstreamProvider } from './upstream-provider.js';

/** How a configured provider of some kind becomes one that can be used, or fails with ConfigProblems. */
type Connect<Settings> = (
  settings: Settings,
  redirectUri: string,
  http: UpstreamHttp,
) => Promise<UpstreamProvider>;

/** Every kind of identity provider there is. */
export const UPSTREAM_KINDS = {
  oidc: (settings, redirectUri, http) => OidcUpstream.connect(settings, redirectUri, http),
} as const satisfies Record<OidcProviderConfig['type'], Connect<OidcProviderConfig>>;
