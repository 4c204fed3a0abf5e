import { domainOf } from '../aws/session/sts-endpoint.js';

/** A container registry of AWS (ECR), as its host name describes it. */
export interface Registry {
  readonly host: string;
  /** The id of its account; undefined for the public registry. */
  readonly account?: string;
  readonly region: string;
  /** True for a host that accepts only cryptography of FIPS 140. */
  readonly isFips: boolean;
}

/** The host of the public registry of AWS, whose tokens come from one region alone. */
export const PUBLIC_HOST = 'public.ecr.aws';

const PRIVATE = /^(\d{12})\.dkr[.-]ecr(-fips)?\.([a-z]{2,8}(?:-[a-z0-9]+){1,4})\.([a-z.]+)$/;

/** The domains of registries that answer over IPv6, too. */
const DUAL_STACK = ['on.aws', 'on.amazonwebservices.com.cn'];

/**
 * Returns the registry that a server URL of Docker names: a host, with or without `https://` and a
 * path. Returns undefined for any other server, which gets no token.
 */
export function registryOf(serverUrl: string): Registry | undefined {
  const host = serverUrl
    .trim()
    .toLowerCase()
    .replace(/^https:\/\//, '')
    .replace(/\/.*$/s, '');
  if (host === PUBLIC_HOST) return { host, region: 'us-east-1', isFips: false };
  const [, account, fips, region = '', domain = ''] = PRIVATE.exec(host) ?? [];
  if (account === undefined) return undefined;
  const isOfAws = domain === domainOf(region) || DUAL_STACK.includes(domain);
  return isOfAws ? { host, account, region, isFips: fips !== undefined } : undefined;
}
