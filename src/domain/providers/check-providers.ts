import { MetadataFault } from './saml/metadata/idp-metadata.js';
import { systemClock } from '#platform/clock/clock.js';
import type { Config, ProviderConfig } from '#platform/config/config.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { discoverProvider } from './openid/provider-discovery.js';
import { fetchMetadata } from './saml/metadata/provider-metadata.js';

/** The result of a check of one identity provider. */
export interface ProviderReport {
  readonly slug: string;
  /** The reason why the service would not start with this provider; undefined if there is none. */
  readonly problem: string | undefined;
  /**
   * The time in the header `Date` of the provider's response, in milliseconds since 1970, by which
   * the clocks are compared; undefined if there was none.
   */
  readonly date: number | undefined;
}

/**
 * Fetches the published documents of each configured provider at the same time, as the start of the
 * service does. It is for a check before the start, and changes nothing.
 */
export async function checkProviders({
  providers,
  extraCaCerts,
}: Config['upstream']): Promise<ProviderReport[]> {
  const http = new UpstreamHttp(extraCaCerts);
  try {
    return await Promise.all(providers.map((provider) => look(provider, http)));
  } finally {
    await http.close();
  }
}

async function look(provider: ProviderConfig, http: UpstreamHttp): Promise<ProviderReport> {
  let date: number | undefined;
  const dated = {
    fetch: async (...args: Parameters<UpstreamHttp['fetch']>) => {
      const answer = await http.fetch(...args);
      const stated = answer.headers.get('date');
      date = Date.parse(stated ?? '') || undefined;
      return answer;
    },
  };
  try {
    if (provider.type === 'oidc') await discoverProvider(provider, dated);
    else await fetchMetadata(provider, { http: dated, clock: systemClock });
    return { slug: provider.slug, problem: undefined, date };
  } catch (error) {
    return { slug: provider.slug, problem: problemOf(error), date };
  }
}

function problemOf(error: unknown): string {
  return error instanceof MetadataFault ? `the metadata ${error.message}` : reasonOf(error);
}
