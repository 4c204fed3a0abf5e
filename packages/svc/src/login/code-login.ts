import { randomText } from '../program/clock.js';
import { sha256 } from '../server/dpop-key.js';
import type { StepUpChallenge } from '../server/server-client.js';
import type { StoredToken } from '../server/stored-token.js';
import { openLoginPage } from './browser.js';
import { listenForAnswer } from './loopback.js';
import { CLIENT_ID, scopeOf, storeToken, type LoginParts } from './new-token.js';

/**
 * Logs in through the browser: by an authorization code with PKCE, which the browser brings to a
 * local port (RFC 8252). The token is bound to the DPoP key of this machine (RFC 9449), so that a
 * copy of it is useless on another machine.
 *
 * @param challenge the demand of the server for a new touch (RFC 9470)
 */
export async function loginByCode(
  parts: LoginParts,
  challenge?: StepUpChallenge,
): Promise<StoredToken> {
  const { server, client, dpopKey, kind, terminal } = parts;
  const [state, verifier] = [randomText(), randomText()];
  const loopback = await listenForAnswer({ state, issuer: server });
  try {
    const query = new URLSearchParams({
      client_id: CLIENT_ID,
      response_type: 'code',
      redirect_uri: loopback.redirectUri,
      scope: scopeOf(kind),
      state,
      code_challenge: await sha256(verifier),
      code_challenge_method: 'S256',
      dpop_jkt: await dpopKey.thumbprint(),
      ...(challenge?.maxAge === undefined ? {} : { max_age: challenge.maxAge }),
      ...(challenge?.acrValues === undefined ? {} : { acr_values: challenge.acrValues }),
    });
    openLoginPage(`${server}/oauth/authorize?${query.toString()}`, terminal);
    const code = await loopback.code;
    const answer = await client.form('/oauth/token', {
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      code,
      code_verifier: verifier,
      redirect_uri: loopback.redirectUri,
    });
    return await storeToken(parts, answer);
  } finally {
    loopback.close();
  }
}
