import type { IncomingMessage } from 'node:http';
import { systemRandom } from '../clock.js';
import type { SignedRequest } from './request-signature.js';
import { AwsError } from './xml.js';

/** A token by which Docker logs in to a container registry. */
export interface RegistryToken {
  readonly password: string;
  /** The ARN of the role session that requested the token. */
  readonly caller: string;
  readonly service: 'ecr' | 'ecr-public';
  readonly region: string;
}

/** The services with `GetAuthorizationToken`, by the beginning of the header `X-Amz-Target`. */
const SERVICES: Readonly<Record<string, RegistryToken['service']>> = {
  AmazonEC2ContainerRegistry_V20150921: 'ecr',
  SpencerFrontendService: 'ecr-public',
};

/** The lifetime of a token for a registry, in seconds. */
const LIFETIME = 43_200;

/** Returns true if a request is for a container registry of AWS. */
export function isForEcr({ method, headers }: IncomingMessage): boolean {
  return method === 'POST' && Object.hasOwn(SERVICES, targetOf(headers)[0]);
}

/**
 * Answers `GetAuthorizationToken` of ECR, or of the public ECR. The signature was verified.
 *
 * @param now seconds since 1970
 * @throws AwsError if the signature is for another service, or the registry belongs to another
 *   account
 */
export function ecrAnswer(
  { message, body }: SignedRequest,
  caller: { readonly arn: string; readonly account: string },
  now: number,
): { readonly body: string; readonly token: RegistryToken } {
  const [prefix, action] = targetOf(message.headers);
  const service = SERVICES[prefix] ?? 'ecr';
  if (action !== 'GetAuthorizationToken') {
    throw new AwsError('UnknownOperationException', 'The stand-in knows one action');
  }
  const scope = /Credential=[^/]+\/\d{8}\/([^/]+)\/([^/]+)\//.exec(
    message.headers.authorization ?? '',
  );
  const [, region = '', signed = ''] = scope ?? [];
  if (signed !== service || (service === 'ecr-public' && region !== 'us-east-1')) {
    const detail = `Credential should be scoped to correct service: '${service}'.`;
    throw new AwsError('InvalidSignatureException', detail, 403);
  }
  const { registryIds } = Object(JSON.parse(body.toString())) as { registryIds?: string[] };
  if (registryIds?.some((id) => id !== caller.account) === true) {
    throw new AwsError('AccessDeniedException', 'The registry is of another account', 400);
  }
  const password = systemRandom.bytes(48).toString('base64url');
  const data = {
    authorizationToken: Buffer.from(`AWS:${password}`).toString('base64'),
    expiresAt: now + LIFETIME,
  };
  const proxyEndpoint = `https://${caller.account}.dkr.ecr.${region}.amazonaws.com`;
  const authorizationData = service === 'ecr' ? [{ ...data, proxyEndpoint }] : data;
  return {
    body: JSON.stringify({ authorizationData }),
    token: { password, caller: caller.arn, service, region },
  };
}

/** Returns an error as JSON, in the form of ECR (`__type` and `message`). */
export function ecrError({ code, message }: AwsError): string {
  return JSON.stringify({ __type: code, message });
}

/** Returns the service and the action of a request, by its header `X-Amz-Target`. */
function targetOf(headers: IncomingMessage['headers']): [service: string, action: string] {
  const [service = '', action = ''] = String(headers['x-amz-target'] ?? '').split('.');
  return [service, action];
}
