import { createAppAuth } from '@octokit/auth-app';
import type { GitHubSettings } from '#platform/config/config.js';

/**
 * Makes the function that signs a JWT of the GitHub App (RS256, 10 minutes at most).
 *
 * This file alone imports `@octokit/auth-app`, and uses its authentication of the App. The exchange of the JWT for an installation
 * token is in `GitHubApp`: the library gives one token to all callers that ask for the same at the same time, also with `refresh`,
 * and a token that two users hold cannot be revoked for one of them.
 */
export function appJwtSigner({ appId, appKey }: GitHubSettings): () => Promise<string> {
  const authenticate = createAppAuth({ appId, privateKey: appKey });
  return async () => (await authenticate({ type: 'app' })).token;
}
