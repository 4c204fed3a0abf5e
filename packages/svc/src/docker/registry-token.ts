import type { RoleCredentials } from '../aws/session/assume-role.js';
import { domainOf, endpointOf } from '../aws/session/sts-endpoint.js';
import { now } from '../program/clock.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { send, type PlainAnswer } from '../server/transport.js';
import { printable } from '../terminal/table.js';
import type { Terminal } from '../terminal/terminal.js';
import { signed } from './aws-signature.js';
import type { Registry } from './registry.js';

/**
 * The longest wait in milliseconds for ECR, the container registry of AWS. Docker waits for the
 * command meanwhile.
 */
const TIMEOUT = 10_000;

/** The name and the password by which Docker logs in to a registry. */
export interface RegistryLogin {
  readonly username: string;
  readonly secret: string;
}

/**
 * Asks ECR, the container registry of AWS, for a token of a registry (`GetAuthorizationToken`). The
 * token has the rights of the role session that signs the request.
 *
 * @throws CliFailure with the error of ECR in one line
 */
export async function registryLogin(
  registry: Registry,
  credentials: RoleCredentials,
  terminal: Terminal,
): Promise<RegistryLogin> {
  const isPublic = registry.account === undefined;
  const target = isPublic ? 'SpencerFrontendService' : 'AmazonEC2ContainerRegistry_V20150921';
  const url = isPublic ? publicEndpoint() : privateEndpoint(registry);
  const unsigned = {
    url,
    headers: {
      'content-type': 'application/x-amz-json-1.1',
      'x-amz-target': `${target}.GetAuthorizationToken`,
    },
    body: '{}',
    service: isPublic ? 'ecr-public' : 'ecr',
    region: registry.region,
  };
  const request = async () => {
    const headers = signed(unsigned, credentials, now());
    return { method: 'POST', url, headers, body: unsigned.body };
  };
  const answer = await send(request, terminal, TIMEOUT);
  if (answer.status !== 200) throw refusalOf(answer, new URL(url).host);
  return loginOf(answer.text, new URL(url).host);
}

function privateEndpoint({ region, isFips }: Registry): string {
  const prefix = isFips ? 'ecr-fips' : 'api.ecr';
  return endpointOf('ECR') ?? `https://${prefix}.${region}.${domainOf(region)}/`;
}

function publicEndpoint(): string {
  return endpointOf('ECR_PUBLIC') ?? 'https://api.ecr-public.us-east-1.amazonaws.com/';
}

/** Reads the name and the password in the answer of ECR: `NAME:PASSWORD` in base64. */
function loginOf(text: string, host: string): RegistryLogin {
  try {
    const { authorizationData: data } = JSON.parse(text) as { readonly authorizationData: unknown };
    const [first] = [data].flat();
    const { authorizationToken: token } = Object(first) as { readonly authorizationToken: string };
    const [, username = '', secret = ''] =
      /^([!-9;-~]+):([!-~]+)$/.exec(Buffer.from(token, 'base64').toString()) ?? [];
    if (username !== '' && secret !== '') return { username, secret };
  } catch {
    // Such an answer gets the same failure as one without a token.
  }
  throw new CliFailure(`The answer of ${host} is not one of ECR.`, 'Check AWS_ENDPOINT_URL_ECR.');
}

/** Converts an error of ECR to the failure of the command. */
function refusalOf({ status, text }: PlainAnswer, host: string): CliFailure {
  const { __type: type, message, Message } = errorOf(text);
  const code = typeof type === 'string' ? printable(type.replace(/^.*#/, '')).slice(0, 64) : '';
  if (code === '') {
    return new CliFailure(`${host} answered ${status}, and not as ECR does.`, 'Try again later.');
  }
  const said = [message, Message].find((one) => typeof one === 'string');
  const detail = typeof said === 'string' ? `: ${printable(said).slice(0, 300)}` : '';
  const whatToDo = 'Check the policies of the role: it needs ecr:GetAuthorizationToken.';
  const isRefused = status < 500;
  return new CliFailure(
    `AWS ECR refused a token: ${code}${detail}`,
    isRefused ? whatToDo : 'Try again later.',
    isRefused ? STATUS.refused : STATUS.failed,
  );
}

function errorOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return {};
  }
}
