import { z } from 'zod';
import { isHttpsOrLoopback } from '#platform/text/loopback.js';
import type { OidcProviderConfig } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { providerVariable } from '#platform/config/provider-settings.js';
import {
  isCommonIssuer,
  isPersonalIssuer,
  normalizeTemplate,
  tenantTemplate,
} from './microsoft-issuer.js';
import { fetchFault, type UpstreamHttp } from '#platform/outbound/upstream-http.js';

/**
 * Matches the signature algorithms with a public key. `none` and HMAC with the client secret are
 * left out, because they prove less.
 */
const ASYMMETRIC = /^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$|^Ed25519$/;

const SECRET_METHOD = /^client_secret_(?:basic|post)$/;
const COMMON_REFUSED =
  'the multi-tenant "common" v2.0 issuer is not supported; use the issuer of your tenant, or "organizations"';
const PERSONAL_REFUSED =
  'the issuer of Microsoft\'s personal accounts is not supported; use the issuer of your tenant, or "organizations"';

const endpoint = z.string().refine((text) => URL.canParse(text), 'is not a URL');
const DOCUMENT = z.object({
  issuer: z.string(),
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  jwks_uri: endpoint,
  userinfo_endpoint: endpoint.exactOptional(),
  id_token_signing_alg_values_supported: z.array(z.string()).default(['RS256']),
  // The standard states this default (OpenID Connect Discovery 1.0 §3).
  token_endpoint_auth_methods_supported: z.array(z.string()).default(['client_secret_basic']),
  authorization_response_iss_parameter_supported: z.boolean().default(false),
});

/** The checked fields of a discovery document that a sign-in uses. */
export type ProviderMetadata = z.output<typeof DOCUMENT>;

/**
 * Fetches and checks a provider's discovery document (OpenID Connect Discovery 1.0 §4).
 *
 * @throws ConfigProblems with one line: the variable of the provider and the problem
 */
export async function discoverProvider(
  { slug, issuer }: Pick<OidcProviderConfig, 'slug' | 'issuer'>,
  http: Pick<UpstreamHttp, 'fetch'>,
): Promise<ProviderMetadata> {
  const refuse = (problem: string): never => {
    throw new ConfigProblems([`${providerVariable(slug, 'ISSUER')}: ${problem}`]);
  };
  const malformed = issuerProblem(issuer);
  if (malformed) return refuse(malformed);

  const answer = await fetchDocument(issuer, http).catch((error: unknown) =>
    refuse(
      `discovery failed: ${error instanceof SyntaxError ? 'its answer is not JSON' : fetchFault(error)}`,
    ),
  );
  const { data: document, error } = DOCUMENT.safeParse(answer);
  if (!document) {
    const fields = error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    return refuse(`the discovery document is unusable (${fields.join('; ')})`);
  }

  const named = normalizeTemplate(document.issuer);
  if (isCommonIssuer(named)) return refuse(COMMON_REFUSED);
  if (named !== (tenantTemplate(issuer) ?? issuer)) {
    const quoted = JSON.stringify(document.issuer.slice(0, 200));
    return refuse(
      `issuer mismatch: the discovery document says ${quoted}; both must be equal to the character, ` +
        'a trailing slash included',
    );
  }
  const insecure = insecureEndpoint(document);
  if (insecure) return refuse(`the discovery document's ${insecure} must be https`);
  const algorithms = document.id_token_signing_alg_values_supported.filter((alg) =>
    ASYMMETRIC.test(alg),
  );
  if (algorithms.length === 0) {
    return refuse('the provider signs ID tokens with no asymmetric algorithm');
  }
  if (
    !document.token_endpoint_auth_methods_supported.some((method) => SECRET_METHOD.test(method))
  ) {
    return refuse('the provider takes a client secret neither by Basic nor in the form body');
  }
  return { ...document, issuer: named, id_token_signing_alg_values_supported: algorithms };
}

function issuerProblem(issuer: string): string | undefined {
  if (!isHttpsOrLoopback(issuer)) return 'must be https (http only for localhost)';
  if (isCommonIssuer(issuer)) return COMMON_REFUSED;
  if (isPersonalIssuer(issuer)) return PERSONAL_REFUSED;
  const { search, hash, username, password } = new URL(issuer);
  return search || hash || username || password
    ? 'must have no query, fragment or credentials'
    : undefined;
}

/**
 * Returns the name of an endpoint that has no https; undefined if all have it. If the issuer itself
 * has http on this machine, its endpoints may have http.
 */
function insecureEndpoint(document: ProviderMetadata): string | undefined {
  const isLocal = document.issuer.startsWith('http:');
  const used = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'];
  return Object.entries(document).find(([name, value]) => {
    if (!used.includes(name) || typeof value !== 'string') return false;
    return !value.startsWith('https:') && !(isLocal && isHttpsOrLoopback(value));
  })?.[0];
}

/**
 * Fetches the discovery document of an issuer. The URL of the document is made without the last
 * slash of the issuer (§4.1), although the `issuer` in the document has the slash.
 */
async function fetchDocument(issuer: string, http: Pick<UpstreamHttp, 'fetch'>): Promise<unknown> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await http.fetch(url, {
    method: 'GET',
    headers: { accept: 'application/json' },
  });
  if (response.status !== 200) throw new Error(`it answered with status ${response.status}`);
  return response.json();
}
