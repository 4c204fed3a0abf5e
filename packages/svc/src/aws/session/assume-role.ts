import { CliFailure, STATUS } from '../../program/failure.js';
import { send, type PlainAnswer } from '../../server/transport.js';
import { printable } from '../../terminal/table.js';
import type { Terminal } from '../../terminal/terminal.js';
import type { RoleChoices } from './role-choices.js';
import { stsEndpoint } from './sts-endpoint.js';

/**
 * The longest wait in milliseconds for STS, the service of AWS that gives credentials of roles. The
 * AWS tools wait for the command meanwhile.
 */
const TIMEOUT = 10_000;

/** The credentials of a role, by the names that `credential_process` demands. */
export interface RoleCredentials {
  readonly AccessKeyId: string;
  readonly SecretAccessKey: string;
  readonly SessionToken: string;
  /** The time at which the credentials expire (RFC 3339). */
  readonly Expiration: string;
}

/**
 * Exchanges a token at STS (`AssumeRoleWithWebIdentity`). The request needs no signature. The
 * policy `ReadOnlyAccess` of AWS limits a session that can only read: its rights are those that
 * both the role and the policy have.
 *
 * @throws CliFailure with the error of STS in one line, and the next step
 */
export async function assumeRole(
  token: string,
  choices: RoleChoices,
  terminal: Terminal,
): Promise<RoleCredentials> {
  const url = stsEndpoint(choices);
  if (choices.readOnly) assertReadOnly(token);
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: choices.role,
    RoleSessionName: choices.sessionName ?? sourceIdentityOf(token),
    DurationSeconds: String(choices.duration),
    WebIdentityToken: token,
    ...(choices.readOnly ? { 'PolicyArns.member.1.arn': readOnlyPolicy(choices.role) } : {}),
  }).toString();
  const headers = {
    accept: 'application/xml',
    'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
  };
  const request = async () => ({ method: 'POST', url, headers, body });
  const answer = await send(request, terminal, TIMEOUT);
  if (answer.status !== 200) throw refusalOf(answer, token, new URL(url).host);
  return credentialsOf(answer.text, new URL(url).host);
}

/**
 * Returns the source identity in a token, which names the user. It also serves as the name of the
 * role session.
 */
function sourceIdentityOf(token: string): string {
  const identity = claimsOf(token)['https://aws.amazon.com/source_identity'];
  return typeof identity === 'string' ? identity : 'svc';
}

/** Returns the ARN of AWS's own policy for reading, in the partition of a role. */
function readOnlyPolicy(role: string): string {
  const [, partition = ''] = role.split(':');
  return `arn:${partition}:iam::aws:policy/ReadOnlyAccess`;
}

/**
 * Checks that a token has the session tag `read_only`. A server of an earlier version ignores the
 * parameter `read_only`. Its token has no tag, so that rules of the role that test the tag would
 * not limit the session.
 *
 * @throws CliFailure for a token without the tag
 */
function assertReadOnly(token: string): void {
  const { principal_tags: tags } = Object(claimsOf(token)['https://aws.amazon.com/tags']) as Claims;
  const { read_only: mark } = Object(tags) as Claims;
  if (Array.isArray(mark) && mark[0] === 'true') return;
  const message = 'The server does not mark sessions that can only read.';
  throw new CliFailure(message, 'It needs version 0.14 of the server. Ask an admin.');
}

/** Returns the claims of a token, which are not verified; none for a text that is no token. */
function claimsOf(token: string): Claims {
  try {
    const [, claims = ''] = token.split('.');
    return Object(JSON.parse(Buffer.from(claims, 'base64url').toString())) as Claims;
  } catch {
    return {};
  }
}

type Claims = Readonly<Record<string, unknown>>;

function credentialsOf(xml: string, host: string): RoleCredentials {
  const part = (name: keyof RoleCredentials) => elementOf(xml, name);
  const credentials = {
    AccessKeyId: part('AccessKeyId'),
    SecretAccessKey: part('SecretAccessKey'),
    SessionToken: part('SessionToken'),
    Expiration: part('Expiration'),
  };
  const isWhole =
    Object.values(credentials).every((value) => value !== '') &&
    !Number.isNaN(Date.parse(credentials.Expiration));
  if (isWhole) return credentials;
  throw new CliFailure(`The answer of ${host} is not one of STS.`, 'Check AWS_ENDPOINT_URL_STS.');
}

/** The advice for the user about an error of STS, by the code of the error. */
const NEXT_STEPS: Readonly<Record<string, string>> = {
  InvalidIdentityToken: 'Check the identity provider in IAM: its URL and its audience.',
  ExpiredTokenException: 'Check the clock of the server.',
  IDPCommunicationError: 'Try again. If it stays, AWS cannot reach the server.',
  AccessDenied:
    'Check the trust policy of the role: its conditions, sts:TagSession, sts:SetSourceIdentity.',
  ValidationError: 'Check --role, --duration and --session-name.',
};
/** The largest number of characters of an STS error text that the command shows. */
const LONGEST_MESSAGE = 300;

/**
 * Converts an error of STS to the failure of the command. The token is removed from the text of
 * STS, because a server that only pretends to be STS may repeat it.
 */
function refusalOf({ status, text }: PlainAnswer, token: string, host: string): CliFailure {
  const code = printable(elementOf(text, 'Code')).slice(0, 64);
  const said = elementOf(text, 'Message')
    .replaceAll(token, '[token]')
    .replaceAll(/eyJ[\w.-]{20,}/g, '[token]');
  const message = printable(said).slice(0, LONGEST_MESSAGE);
  if (code === '') {
    return new CliFailure(`${host} answered ${status}, and not as STS does.`, 'Try again later.');
  }
  return new CliFailure(
    `AWS STS refused the role: ${code}${message === '' ? '' : `: ${message}`}`,
    NEXT_STEPS[code] ?? 'Try again later.',
    status >= 500 || code === 'IDPCommunicationError' ? STATUS.failed : STATUS.refused,
  );
}

/** Returns the text of the first XML element with a name; empty if there is none. */
function elementOf(xml: string, name: string): string {
  const [, text = ''] = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml) ?? [];
  return text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, named) => {
    if (named !== undefined) return ENTITIES[String(named)] ?? whole;
    const code = decimal === undefined ? parseInt(String(hex), 16) : Number(decimal);
    return code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole;
  });
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};
