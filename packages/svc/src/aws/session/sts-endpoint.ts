import { variable } from '../../program/environment.js';
import { CliFailure, STATUS } from '../../program/failure.js';
import { assertRegion, type RoleChoices } from './role-choices.js';

/**
 * The domains of AWS, each with the beginning of the names of its regions. The first beginning that
 * fits decides.
 */
const DOMAINS: readonly (readonly [prefix: string, domain: string])[] = [
  ['cn-', 'amazonaws.com.cn'],
  ['us-iso-', 'c2s.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov'],
  ['eusc-', 'amazonaws.eu'],
  ['', 'amazonaws.com'],
];
/**
 * The region whose STS is used by default, for partitions of AWS that have no global endpoint of
 * STS.
 */
const FIRST_REGIONS: Readonly<Record<string, string>> = {
  'aws-cn': 'cn-north-1',
  'aws-us-gov': 'us-gov-west-1',
  'aws-iso': 'us-iso-east-1',
  'aws-iso-b': 'us-isob-east-1',
  'aws-eusc': 'eusc-de-east-1',
};

/**
 * Returns the URL of STS: the value of AWS_ENDPOINT_URL_STS, or else of AWS_ENDPOINT_URL, or else
 * the endpoint of the region, or else the global endpoint.
 *
 * @throws CliFailure with status 2 for a URL or a region that cannot be used
 */
export function stsEndpoint({ role, region: given }: RoleChoices): string {
  const chosen = endpointOf('STS');
  if (chosen !== undefined) return chosen;
  const [, partition = ''] = role.split(':');
  const ofEnvironment = ['AWS_REGION', 'AWS_DEFAULT_REGION'].find((name) => variable(name));
  const region = given ?? (ofEnvironment && variable(ofEnvironment)) ?? FIRST_REGIONS[partition];
  if (region === undefined) return 'https://sts.amazonaws.com/';
  assertRegion(region, ofEnvironment ?? '--region', 'a region such as eu-central-1');
  return `https://sts.${region}.${domainOf(region)}/`;
}

/** Returns the domain of AWS in which a region is. */
export function domainOf(region: string): string {
  const [, domain = ''] = DOMAINS.find(([prefix]) => region.startsWith(prefix)) ?? [];
  return domain;
}

/**
 * Returns the URL of a service of AWS that the user set in `AWS_ENDPOINT_URL` or the variable for
 * the service; undefined if neither is set.
 *
 * @param service the service as in the name of its variable, such as `STS`
 * @throws CliFailure with status 2 for a URL that is neither https nor of this machine
 */
export function endpointOf(service: string): string | undefined {
  for (const name of [`AWS_ENDPOINT_URL_${service}`, 'AWS_ENDPOINT_URL']) {
    const address = variable(name);
    if (address !== undefined) return checkedEndpoint(name, address);
  }
  return undefined;
}

/** Checks that a URL has https or a loopback host, because the token in the request is a secret. */
function checkedEndpoint(name: string, address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url?.hostname ?? '');
  if (url && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback))) {
    return url.href;
  }
  const whatToDo = 'Set a URL that begins with https://, or unset the variable.';
  throw new CliFailure(`${name} is not an https URL.`, whatToDo, STATUS.usage);
}
