import { generateKeyPairSync } from 'node:crypto';
import { z } from 'zod';
import { publicKeyBlob, publicKeyLine } from '#domain/ssh-certificates/openssh-private-key.js';
import type { CreateOptions, GetOptions } from '../software-key/software-key.js';
import { prepareSshd, type LocalSshd } from './local-sshd.js';
import type { StepResult, WalkContext } from './scenario.js';
import { read, unexpected, Walker } from './http-client.js';

/** Somebody whom the identity provider provisioned: at a browser of their own, with a certificate. */
export interface Colleague {
  readonly id: string;
  readonly email: string;
  readonly walker: Walker;
  readonly serial: string;
  /** What they log in to, where the machine has OpenSSH. */
  readonly sshd: LocalSshd | undefined;
  /** The token of the identity provider. */
  readonly scimToken: string;
}

const CREATION = z.object({ state: z.string(), publicKey: z.custom<CreateOptions>() });
const REQUEST = z.object({ state: z.string(), publicKey: z.custom<GetOptions>() });
const USER = z.object({ id: z.string(), userName: z.string() });
const REVOCATION = z.object({ revoked: z.boolean() });

/** The admin makes a SCIM token, the identity provider makes a user, and they enroll and get a certificate. */
export async function provisionColleague(context: WalkContext): Promise<StepResult> {
  const { walker, key, provider = '' } = context;
  const email = context.email.replace(/^[^@]+/, 'grace.hopper');
  const made = z.object({ id: z.string(), token: z.string() });
  const token = await walker.postFor(
    '/api/v1/org/scim-tokens',
    { description: 'The demo’s identity provider' },
    made,
  );
  const body = { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName: email };
  const provisioner = new Walker(walker.baseUrl, '192.0.2.9');
  const user = read(await provisioner.sendWith(token.token, 'POST', '/scim/v2/Users', body), USER);

  const colleague = new Walker(walker.baseUrl, '192.0.2.7');
  const query = new URLSearchParams({ provider, login_hint: email });
  await colleague.go(`/login?${query.toString()}`);
  const enrollment = await colleague.postFor('/enroll/webauthn/start', {}, CREATION);
  await colleague.postFor(
    '/enroll/webauthn/complete',
    {
      state: enrollment.state,
      credential: key.create(enrollment.publicKey, walker.baseUrl),
      name: 'The same key, another account',
    },
    z.object({}),
  );
  const { state, publicKey } = await colleague.postFor('/login/webauthn/start', {}, REQUEST);
  const credential = key.get(publicKey, walker.baseUrl);
  await colleague.postFor('/login/webauthn/complete', { state, credential }, z.object({}));
  const sshd = await prepareSshd();
  const ssh = await colleague.postFor(
    '/v1/credentials/ssh',
    { public_key: sshd?.publicKeyLine ?? newPublicKeyLine(email) },
    z.object({ serial: z.string(), certificate: z.string(), ca_public_key: z.string() }),
  );
  const { serial } = ssh;
  context.colleague = {
    id: user.id,
    email,
    walker: colleague,
    serial,
    sshd,
    scimToken: token.token,
  };
  if (sshd) {
    try {
      const revoked = await walker.download('/v1/credentials/ssh/krl');
      const { certificate, ca_public_key: authority } = ssh;
      await sshd.start({ authority, principal: email, certificate, revoked });
      if (!(await sshd.letsIn())) throw new Error('sshd does not take the certificate');
    } catch (error) {
      await sshd.stop();
      throw error;
    }
  }
  return {
    line: `${email} was provisioned, enrolled a key and has the certificate ${serial}${sshd ? ', which sshd takes' : ''}`,
    result: { scim_token_id: token.id, user_id: user.id, email, serial, sshd: sshd !== undefined },
  };
}

function newPublicKeyLine(email: string): string {
  return publicKeyLine(publicKeyBlob(generateKeyPairSync('ed25519').privateKey), email);
}

/** The identity provider deletes them: before its answer their session is over and their certificate revoked. */
export async function deleteColleague({ walker, colleague }: WalkContext): Promise<StepResult> {
  if (!colleague) throw new Error('there is no colleague to delete');
  try {
    return await seeThemOut(walker, colleague);
  } finally {
    await colleague.sshd?.stop();
  }
}

async function seeThemOut(walker: Walker, colleague: Colleague): Promise<StepResult> {
  const { id, email, serial, scimToken, sshd } = colleague;
  if ((await colleague.walker.go('/v1/keys')).status !== 200) {
    throw new Error('the colleague had no session to begin with');
  }
  const began = performance.now();
  const seconds = () => Number(((performance.now() - began) / 1000).toFixed(3));
  const gone = await walker.sendWith(scimToken, 'DELETE', `/scim/v2/Users/${id}`);
  if (gone.status !== 204) throw unexpected(gone);
  const answered = seconds();
  const refused = await colleague.walker.go('/v1/keys');
  if (refused.status !== 401) throw new Error(`the session of ${email} goes on`);
  const ended = seconds();
  const listed = read(await walker.go(`/v1/credentials/ssh/krl/${serial}`), REVOCATION);
  if (!listed.revoked) throw new Error(`the certificate ${serial} is not revoked`);
  const revoked = seconds();
  let refusedBySshd: number | null = null;
  if (sshd) {
    await sshd.refresh(await walker.download('/v1/credentials/ssh/krl'));
    if (await sshd.letsIn()) throw new Error('sshd still takes the certificate');
    refusedBySshd = seconds();
  }
  const atSshd =
    refusedBySshd === null ? 'no sshd here to ask' : `refused by sshd after ${refusedBySshd} s`;
  return {
    line: `${email} is gone: session refused after ${ended} s, certificate ${serial} revoked after ${revoked} s, ${atSshd}`,
    result: {
      user_id: id,
      seconds: {
        answered,
        session_refused: ended,
        certificate_revoked: revoked,
        refused_by_sshd: refusedBySshd,
      },
      serial,
    },
  };
}
