import type { CommandContext } from '../command/command-context.js';
import { CliFailure, STATUS } from '../program/failure.js';
import { sendForm } from '../server/transport.js';
import type { RoleCredentials } from './session/assume-role.js';
import { endpointOf } from './session/sts-endpoint.js';

/** The longest wait for the sign-in of AWS in milliseconds. */
const TIMEOUT = 10_000;

/**
 * The hosts of the sign-in and of the console, for each partition of AWS (such as China) for which
 * AWS documents them.
 */
const HOSTS: Readonly<Record<string, { readonly signIn: string; readonly console: string }>> = {
  aws: { signIn: 'signin.aws.amazon.com', console: 'console.aws.amazon.com' },
  'aws-cn': { signIn: 'signin.amazonaws.cn', console: 'console.amazonaws.cn' },
  'aws-us-gov': {
    signIn: 'signin.amazonaws-us-gov.com',
    console: 'console.amazonaws-us-gov.com',
  },
};

/** A page of the console: that of a service, or the home page. */
export interface ConsolePage {
  readonly service: string | undefined;
  readonly region: string | undefined;
  /** The ARN of the role, whose partition decides the hosts of the console. */
  readonly role: string;
}

/**
 * Returns the URL that signs a browser in to the console (IAM User Guide, "Enable custom identity
 * broker access to the AWS console"). It is a secret, and valid for 15 minutes. The request has no
 * `SessionDuration`, so that the console session ends with the credentials.
 *
 * @throws CliFailure if AWS refuses the credentials
 */
export async function signInAddress(
  credentials: RoleCredentials,
  page: ConsolePage,
  context: CommandContext,
): Promise<string> {
  const [, partition = ''] = page.role.split(':');
  const hosts = HOSTS[partition];
  if (!hosts) {
    const message = `The sign-in to the console of the partition ${partition} is not known.`;
    throw new CliFailure(message, 'Open the console of this partition by hand.', STATUS.usage);
  }
  const endpoint = signInEndpoint(hosts.signIn);
  const session = JSON.stringify({
    sessionId: credentials.AccessKeyId,
    sessionKey: credentials.SecretAccessKey,
    sessionToken: credentials.SessionToken,
  });
  const fields = { Action: 'getSigninToken', SessionType: 'json', Session: session };
  const { status, text } = await sendForm(endpoint, fields, TIMEOUT);
  const token = status === 200 ? signInTokenOf(text) : undefined;
  if (token === undefined) {
    const message = `${new URL(endpoint).host} refused the sign-in to the console (${status}).`;
    throw new CliFailure(message, 'Try again later.', STATUS.refused);
  }
  const parameters = new URLSearchParams({
    Action: 'login',
    Issuer: context.server(),
    Destination: destinationOf(hosts.console, page),
    SigninToken: token,
  });
  return `${endpoint}?${parameters.toString()}`;
}

/** Returns the URL of the sign-in, whose host AWS_ENDPOINT_URL_SIGNIN can replace. */
function signInEndpoint(host: string): string {
  return new URL('/federation', endpointOf('SIGNIN') ?? `https://${host}`).href;
}

function signInTokenOf(text: string): string | undefined {
  try {
    const { SigninToken: token } = Object(JSON.parse(text)) as { readonly SigninToken?: unknown };
    return typeof token === 'string' && /^[!-~]+$/.test(token) ? token : undefined;
  } catch {
    return undefined;
  }
}

function destinationOf(host: string, { service, region }: ConsolePage): string {
  const origin = region === undefined ? `https://${host}` : `https://${region}.${host}`;
  const query = region === undefined ? '' : `?region=${region}`;
  return `${origin}/${service ?? 'console'}/home${query}`;
}
