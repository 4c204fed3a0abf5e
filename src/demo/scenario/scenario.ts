import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { publicKeyBlob, publicKeyLine } from '#domain/ssh-certificates/openssh-private-key.js';
import { sshFingerprint } from '#domain/ssh-certificates/ssh-public-key.js';
import type { CreateOptions, GetOptions, SoftwareKey } from '../software-key/software-key.js';
import { approveCommandLine, signInToApplication } from './oauth-steps.js';
import { deleteColleague, provisionColleague, type Colleague } from './offboarding.js';
import { readCertificate } from './ssh-certificate.js';
import { read, unexpected, Walker } from './http-client.js';

/** What the steps know, and leave for those after them. */
export interface WalkContext {
  readonly walker: Walker;
  /** New in each run, the domain too: whoever is first in an organization is its admin. */
  readonly email: string;
  /** The software key in this person's hand. */
  readonly key: SoftwareKey;
  /** The slug of the identity provider that signs in whoever is named; undefined where the environment names others. */
  readonly provider: string | undefined;
  ssh?: SshCredential;
  colleague?: Colleague;
}

/** A step's result: a line for people, and the facts of it for programs. */
export interface StepResult {
  readonly line: string;
  readonly result: object;
}

/** One step of the walk: it throws when what it shows does not hold. */
export interface Step {
  readonly name: string;
  run(context: WalkContext): Promise<StepResult>;
}

/** The main job, from nobody to somebody with a credential; a feature's step joins with the feature. */
export const STEPS: readonly Step[] = [
  { name: 'sign in upstream', run: signInUpstream },
  { name: 'enroll the software key', run: enrollKey },
  { name: 'log in with the key', run: logInWithKey },
  { name: 'list the keys', run: listKeys },
  { name: 'get an SSH certificate', run: getSshCertificate },
  { name: 'check it against the CA key', run: checkSshCertificate },
  { name: 'sign in to an application', run: signInToApplication },
  { name: 'approve the command line', run: approveCommandLine },
  { name: 'provision a colleague by SCIM', run: provisionColleague },
  { name: 'delete the colleague by SCIM', run: deleteColleague },
];

/** A newcomer at the door of the service. */
export function newWalk(
  baseUrl: string,
  key: SoftwareKey,
  provider: string | undefined,
): WalkContext {
  const email = `ada.lovelace@demo-${randomBytes(4).toString('hex')}.example`;
  return { walker: new Walker(baseUrl, '192.0.2.5'), email, key, provider };
}

const KEY = z.object({
  id: z.string(),
  name: z.string(),
  aaguid: z.string(),
  created_at: z.string(),
  current: z.boolean(),
  user_verification: z.literal(true),
});
const KEYS = z.object({ keys: z.array(KEY) });
const CREATION = z.object({ state: z.string(), publicKey: z.custom<CreateOptions>() });
const REQUEST = z.object({ state: z.string(), publicKey: z.custom<GetOptions>() });
const SSH_CREDENTIAL = z.object({
  certificate: z.string(),
  serial: z.string(),
  key_id: z.string(),
  principals: z.array(z.string()),
  valid_after: z.string(),
  valid_before: z.string(),
  ca_public_key: z.string(),
});
type SshCredential = z.output<typeof SSH_CREDENTIAL>;

/** In milliseconds: a cookie's lifetime is cut to whole ones. */
const SECOND = 1000;

const KEY_NAME = 'The demo’s own';

async function signInUpstream({ walker, email, provider }: WalkContext): Promise<StepResult> {
  if (provider === undefined) {
    throw new Error('SVC_IDPS names other identity providers, where the demo cannot sign in');
  }
  const query = new URLSearchParams({ provider, login_hint: email });
  const page = await walker.go(`/login?${query.toString()}`);
  if (page.status !== 200 || page.url.pathname !== '/enroll') throw unexpected(page);
  return {
    line: `${email}, who has no key yet, is asked to enroll one`,
    result: { email, provider, led_to: page.url.pathname },
  };
}

async function enrollKey({ walker, key }: WalkContext): Promise<StepResult> {
  const { state, publicKey } = await walker.postFor('/enroll/webauthn/start', {}, CREATION);
  const credential = key.create(publicKey, walker.baseUrl);
  const completion = { state, credential, name: KEY_NAME };
  const enrolled = await walker.postFor(
    '/enroll/webauthn/complete',
    completion,
    z.object({ key: KEY }),
  );
  return {
    line: `attested as model ${enrolled.key.aaguid}, PIN verified`,
    result: enrolled.key,
  };
}

async function logInWithKey({ walker, key }: WalkContext): Promise<StepResult> {
  const left = await walker.post('/logout');
  if (left.status !== 303) throw unexpected(left);
  const page = await walker.go('/keys');
  if (page.url.pathname !== '/login') throw new Error('logging out did not end the session');

  const { state, publicKey } = await walker.postFor('/login/webauthn/start', {}, REQUEST);
  const credential = key.get(publicKey, walker.baseUrl);
  const done = z.object({ redirect_to: z.string() });
  await walker.postFor('/login/webauthn/complete', { state, credential }, done);
  const expires = walker.sessionExpires().toISOString();
  return {
    line: `logged out, then in again by the key alone; the session lasts until ${expires}`,
    result: { session_expires_at: expires },
  };
}

async function listKeys({ walker }: WalkContext): Promise<StepResult> {
  const { keys } = read(await walker.go('/v1/keys'), KEYS);
  const [only, ...others] = keys;
  if (others.length > 0 || only?.name !== KEY_NAME || !only.current) {
    throw new Error('the list is not the one key that was enrolled and has just logged in');
  }
  return { line: `one key, “${only.name}”, in use by this session`, result: { keys } };
}

async function getSshCertificate(context: WalkContext): Promise<StepResult> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const line = publicKeyLine(publicKeyBlob(privateKey), context.email);
  const ssh = await context.walker.postFor(
    '/v1/credentials/ssh',
    { public_key: line },
    SSH_CREDENTIAL,
  );
  context.ssh = ssh;
  return {
    line: `${ssh.key_id}, serial ${ssh.serial}, until ${ssh.valid_before}`,
    result: { public_key: line, ...ssh },
  };
}

async function checkSshCertificate({ walker, email, ssh }: WalkContext): Promise<StepResult> {
  if (!ssh) throw new Error('there is no certificate to check');
  const answer = await walker.go('/v1/credentials/ssh/ca');
  if (answer.status !== 200) throw unexpected(answer);
  const [, authority = ''] = answer.body.trim().split(' ');
  const fingerprint = sshFingerprint(Buffer.from(authority, 'base64'));
  const certificate = readCertificate(ssh.certificate);
  const { keyId, principals, extensions, validAfter, validBefore } = certificate;
  const claims: Record<string, boolean> = {
    'signed by the key the service publishes': certificate.authority === authority,
    'for this person alone': principals.join() === email,
    'valid now': validAfter <= new Date() && validBefore > new Date(),
    'over when the session is': validBefore.getTime() < walker.sessionExpires().getTime() + SECOND,
  };
  const broken = Object.keys(claims).filter((claim) => !claims[claim]);
  if (broken.length > 0) throw new Error(`the certificate is not ${broken.join(', not ')}`);
  return {
    line: `signed by ${fingerprint}, for ${principals.join()} alone, not beyond the session`,
    result: {
      ca_public_key: answer.body.trim(),
      ca_fingerprint: fingerprint,
      type: certificate.type,
      key_id: keyId,
      principals,
      valid_after: validAfter.toISOString(),
      valid_before: validBefore.toISOString(),
      extensions,
      verified: Object.keys(claims),
    },
  };
}
