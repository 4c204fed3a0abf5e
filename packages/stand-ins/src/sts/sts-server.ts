import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { systemClock, type TimeOfDay, newUuid, systemRandom } from '../clock.js';
import { listenOnLoopback, stopServer } from '../loopback/loopback-server.js';
import {
  verifySignature,
  type SignedRequest,
  type SigningCredentials,
} from './request-signature.js';
import {
  assertTrusted,
  isAuthorizedByIdp,
  roleRequestOf,
  sessionNamesOf,
  type SessionNames,
  type TrustingRole,
} from './role-request.js';
import { verifyWebIdentity, type IamProvider } from './web-identity.js';
import { AwsError, listBucketsResponse, s3Error, stsError, stsResponse } from './xml.js';

/** The options of a stand-in for AWS: its OpenID provider, roles and buckets. */
export interface StsOptions {
  readonly provider: IamProvider;
  readonly roles: readonly TrustingRole[];
  /** The names of the buckets that `ListBuckets` shows to every role. */
  readonly buckets?: readonly string[];
  readonly clock?: TimeOfDay;
}

/** A role session that the stand-in has issued. */
export interface RoleSession extends SigningCredentials, SessionNames {
  readonly accessKeyId: string;
  readonly arn: string;
  readonly userId: string;
  readonly account: string;
}

/** A running stand-in for the services STS and S3 of AWS. */
export interface RunningSts {
  readonly url: string;
  /** Every role session that was issued, the oldest first. */
  readonly sessions: readonly RoleSession[];
  close(): Promise<void>;
}

/** Starts a stand-in for the services STS and S3 of AWS, on a free port of loopback. */
export async function startSts(options: StsOptions): Promise<RunningSts> {
  const sts = new Sts(options);
  const server = createServer((message, response) => {
    void respond(sts, message, response);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    sessions: sts.sessions,
    close: () => stopServer(server),
  };
}

async function respond(
  sts: Sts,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = await sts.answer(message);
  response.writeHead(status, { 'content-type': 'text/xml' }).end(body);
}

class Sts {
  readonly sessions: RoleSession[] = [];

  constructor(private readonly options: StsOptions) {}

  /** Answers a request. A POST is for STS, and any other request is for S3. */
  async answer(message: IncomingMessage): Promise<{ status: number; body: string }> {
    const requestId = newUuid();
    const isSts = message.method === 'POST';
    try {
      const request = { message, body: await buffer(message) };
      const body = isSts ? await this.#act(request, requestId) : this.#listBuckets(request);
      return { status: 200, body };
    } catch (error) {
      const known = error instanceof AwsError ? error : new AwsError('InternalFailure', '', 500);
      const body = isSts ? stsError(known, requestId) : s3Error(known, requestId);
      return { status: known.status, body };
    }
  }

  #act(request: SignedRequest, requestId: string): Promise<string> | string {
    const parameters = new URLSearchParams(request.body.toString());
    const action = parameters.get('Action');
    if (parameters.get('Version') !== '2011-06-15') {
      throw new AwsError('InvalidAction', 'Could not find this version of the action');
    }
    if (action === 'AssumeRoleWithWebIdentity') return this.#assumeRole(parameters, requestId);
    if (action !== 'GetCallerIdentity') {
      throw new AwsError('InvalidAction', `Could not find operation ${action ?? ''}`);
    }
    const { arn, userId, account } = this.#callerOf(request);
    return stsResponse(action, { Arn: arn, UserId: userId, Account: account }, requestId);
  }

  async #assumeRole(parameters: URLSearchParams, requestId: string): Promise<string> {
    const { roleArn, sessionName, token, duration } = roleRequestOf(parameters);
    const { provider, roles, clock = systemClock } = this.options;
    const identity = await verifyWebIdentity(token, provider, clock.seconds());
    const names = sessionNamesOf(identity);
    const role = roles.find(({ arn }) => arn === roleArn);
    const isAuthorized = isAuthorizedByIdp(identity, roleArn);
    assertTrusted(role, { subject: identity.sub, names, duration, isAuthorized });
    const session = newRoleSession(roleArn, sessionName, names, clock.seconds() + duration);
    this.sessions.push(session);
    const result = {
      SubjectFromWebIdentityToken: identity.sub,
      Audience: identity.audience,
      Provider: identity.iss,
      SourceIdentity: names.sourceIdentity,
      AssumedRoleUser: { Arn: session.arn, AssumedRoleId: session.userId },
      Credentials: {
        AccessKeyId: session.accessKeyId,
        SecretAccessKey: session.secretAccessKey,
        SessionToken: session.sessionToken,
        Expiration: session.expiresAt.toISOString().replace('.000Z', 'Z'),
      },
    };
    return stsResponse('AssumeRoleWithWebIdentity', result, requestId);
  }

  #listBuckets(request: SignedRequest): string {
    const { account } = this.#callerOf(request);
    const { pathname } = new URL(request.message.url ?? '/', 'http://stand-in');
    if (request.message.method !== 'GET' || pathname !== '/') {
      throw new AwsError('MethodNotAllowed', 'The stand-in knows ListBuckets alone', 405);
    }
    return listBucketsResponse(account, this.options.buckets ?? []);
  }

  #callerOf(request: SignedRequest): RoleSession {
    const find = (id: string) => this.sessions.find(({ accessKeyId }) => accessKeyId === id);
    return verifySignature(request, find, (this.options.clock ?? systemClock).now());
  }
}

/**
 * Makes the credentials of a role session. The ARN of a session does not contain the path of the
 * role.
 */
function newRoleSession(
  roleArn: string,
  sessionName: string,
  names: SessionNames,
  expires: number,
): RoleSession {
  const [, partition = '', , , account = '', resource = ''] = roleArn.split(':');
  const roleName = resource.split('/').at(-1) ?? '';
  return {
    accessKeyId: `ASIA${uniqueId()}`,
    secretAccessKey: systemRandom.bytes(30).toString('base64'),
    sessionToken: systemRandom.bytes(96).toString('base64'),
    expiresAt: new Date(expires * 1000),
    arn: `arn:${partition}:sts::${account}:assumed-role/${roleName}/${sessionName}`,
    userId: `AROA${uniqueId()}:${sessionName}`,
    account,
    ...names,
  };
}

function uniqueId(): string {
  return systemRandom.bytes(8).toString('hex').toUpperCase();
}
