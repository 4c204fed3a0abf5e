import { z } from 'zod';
import { startSts, type RoleSession } from '@svc/stand-ins/sts';
import type { ScenarioContext, StepResult } from './step.js';

const AWS_CREDENTIAL = z.object({ id_token: z.string(), expires_in: z.number() });
const AUDIENCE = z.object({ aud: z.string() });
/**
 * The ARN of a role of AWS with a path (`demo/`). AWS leaves the path out when it writes the ARN of
 * a session. The demo shows that the service works with such a role.
 */
const ROLE = 'arn:aws:iam::123456789012:role/demo/engineer';
const DURATION = 900;

/**
 * Gets a token for AWS from the service, and exchanges it at a stand-in of AWS STS, which verifies
 * it as STS does.
 */
export async function getAwsCredentials(context: ScenarioContext): Promise<StepResult> {
  const { client, email } = context;
  const body = { role_arn: ROLE };
  const path = '/v1/credentials/aws/token';
  const { id_token: token, expires_in } = await client.postFor(path, body, AWS_CREDENTIAL);
  const session = await assumeRole(client.baseUrl, email, token);
  const { arn, sourceIdentity, tags, expiresAt } = session;
  if (sourceIdentity !== email || tags['email'] !== email) {
    throw new Error('the role session does not name the user');
  }
  const until = expiresAt.toISOString();
  return {
    line: `a token of ${expires_in} s, exchanged at a stand-in for STS: ${arn} until ${until}`,
    result: {
      token_expires_in: expires_in,
      role_arn: ROLE,
      assumed_role: arn,
      source_identity: sourceIdentity,
      session_tags: tags,
      expires_at: until,
    },
  };
}

/**
 * Exchanges a token at a stand-in of AWS STS. The stand-in trusts the service as an identity
 * provider, and lets only this user assume the role.
 */
async function assumeRole(issuer: string, email: string, token: string): Promise<RoleSession> {
  const sts = await startSts({
    provider: { issuer, audiences: [audienceOf(token)] },
    roles: [{ arn: ROLE, trusts: (subject) => subject === email }],
  });
  try {
    const response = await fetch(sts.url, {
      method: 'POST',
      body: new URLSearchParams({
        Action: 'AssumeRoleWithWebIdentity',
        Version: '2011-06-15',
        RoleArn: ROLE,
        RoleSessionName: email,
        DurationSeconds: String(DURATION),
        WebIdentityToken: token,
      }),
    });
    const [session] = sts.sessions;
    if (response.status === 200 && session) return session;
    throw new Error(`STS refused the token: ${errorIn(await response.text())}`);
  } finally {
    await sts.close();
  }
}

/**
 * Returns the audience of a token, which is the value of SVC_AWS_AUDIENCE. In a real account, an
 * administrator of AWS lists the audience in IAM.
 */
function audienceOf(token: string): string {
  const [, claims = ''] = token.split('.');
  return AUDIENCE.parse(JSON.parse(Buffer.from(claims, 'base64url').toString())).aud;
}

function errorIn(xml: string): string {
  const [, code = 'an unknown error', message = ''] =
    /<Code>(.*?)<\/Code><Message>(.*?)<\/Message>/.exec(xml) ?? [];
  return `${code} ${message}`.trim();
}
