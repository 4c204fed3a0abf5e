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
import { ecrAnswer, ecrError, isForEcr, type RegistryToken } from './registry-token.js';
import { SignInTokens } from './sign-in-tokens.js';
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
  /** The ARNs of the managed policies that limit the session. */
  readonly policyArns: readonly string[];
}

/**
 * A running stand-in for the services STS, S3 and ECR of AWS, and for the sign-in of the console.
 */
export interface RunningSts {
  readonly url: string;
  /** Every role session that was issued, the oldest first. */
  readonly sessions: readonly RoleSession[];
  /** Every token for a container registry that was issued, the oldest first. */
  readonly registryTokens: readonly RegistryToken[];
  /** The tokens by which a browser signs in to the console. */
  readonly signIns: SignInTokens<RoleSession>;
  /** The names of the buckets that `CreateBucket` made. */
  readonly madeBuckets: readonly string[];
  close(): Promise<void>;
}

/**
 * Starts a stand-in for STS, S3, ECR and the sign-in of the AWS console, on a free port of
 * loopback.
 */
export async function startSts(options: StsOptions): Promise<RunningSts> {
  const sts = new Sts(options);
  const server = createServer((message, response) => {
    void respond(sts, message, response);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    sessions: sts.sessions,
    registryTokens: sts.registryTokens,
    signIns: sts.signIns,
    madeBuckets: sts.madeBuckets,
    close: () => stopServer(server),
  };
}

async function respond(
  sts: Sts,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, body, type = 'text/xml' } = await sts.answer(message);
  response.writeHead(status, { 'content-type': type }).end(body);
}

/** The answer to a request. Its type is `text/xml` by default. */
interface AwsAnswer {
  readonly status: number;
  readonly body: string;
  readonly type?: string;
}

/** The policies of AWS that allow only reading. */
const READS_ONLY = /:policy\/(?:ReadOnlyAccess|job-function\/ViewOnlyAccess)$/;

class Sts {
  readonly sessions: RoleSession[] = [];
  readonly registryTokens: RegistryToken[] = [];
  readonly signIns = new SignInTokens<RoleSession>();
  readonly madeBuckets: string[] = [];

  constructor(private readonly options: StsOptions) {}

  /**
   * Answers a request. The path `/federation` is the sign-in of the console. A POST that names ECR
   * in `X-Amz-Target` is for ECR, and any other POST is for STS. The rest is for S3.
   */
  async answer(message: IncomingMessage): Promise<AwsAnswer> {
    if (message.url?.startsWith('/federation') === true) {
      const find = (id: string) => this.sessions.find(({ accessKeyId }) => accessKeyId === id);
      return this.signIns.answer(message, (await buffer(message)).toString(), find);
    }
    if (isForEcr(message)) return this.#answerEcr(message);
    const requestId = newUuid();
    const isSts = message.method === 'POST';
    try {
      const request = { message, body: await buffer(message) };
      const body = isSts ? await this.#act(request, requestId) : this.#s3(request);
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
    const { roleArn, sessionName, token, duration, policyArns } = roleRequestOf(parameters);
    const { provider, roles, clock = systemClock } = this.options;
    const identity = await verifyWebIdentity(token, provider, clock.seconds());
    const names = sessionNamesOf(identity);
    const role = roles.find(({ arn }) => arn === roleArn);
    const isAuthorized = isAuthorizedByIdp(identity, roleArn);
    assertTrusted(role, { subject: identity.sub, names, duration, isAuthorized });
    const expires = clock.seconds() + duration;
    const session = { ...newRoleSession(roleArn, sessionName, names, expires), policyArns };
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

  /** Lists the buckets, or makes one if the session policies of the caller allow it. */
  #s3(request: SignedRequest): string {
    const caller = this.#callerOf(request);
    const { method } = request.message;
    const { pathname } = new URL(request.message.url ?? '/', 'http://stand-in');
    if (method === 'GET' && pathname === '/') {
      return listBucketsResponse(caller.account, this.options.buckets ?? []);
    }
    if (method !== 'PUT' || !/^\/[a-z0-9.-]{3,63}$/.test(pathname)) {
      throw new AwsError(
        'MethodNotAllowed',
        'The stand-in knows ListBuckets and CreateBucket',
        405,
      );
    }
    if (caller.policyArns.some((arn) => READS_ONLY.test(arn))) {
      const detail = `User: ${caller.arn} is not authorized to perform: s3:CreateBucket because no session policy allows the s3:CreateBucket action`;
      throw new AwsError('AccessDenied', detail, 403);
    }
    this.madeBuckets.push(pathname.slice(1));
    return '';
  }

  async #answerEcr(message: IncomingMessage): Promise<AwsAnswer> {
    const type = 'application/x-amz-json-1.1';
    try {
      const request = { message, body: await buffer(message) };
      const caller = this.#callerOf(request);
      const issued = ecrAnswer(request, caller, (this.options.clock ?? systemClock).seconds());
      this.registryTokens.push(issued.token);
      return { status: 200, body: issued.body, type };
    } catch (error) {
      if (!(error instanceof AwsError)) return { status: 500, body: '{}', type };
      return { status: error.status, body: ecrError(error), type };
    }
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
): Omit<RoleSession, 'policyArns'> {
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
