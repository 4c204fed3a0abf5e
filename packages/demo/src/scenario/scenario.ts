import { systemRandom } from '@svc/stand-ins/clock';
import { getAwsCredentials } from './aws-steps.js';
import { HttpClient } from './http-client.js';
import { enrollSoftwareKey, listKeys, logInAgain, signInUpstream } from './key-steps.js';
import { approveCommandLine } from './command-line.js';
import { signInToApplication } from './oauth-steps.js';
import { deleteColleague, provisionColleague } from './offboarding.js';
import { checkSshCertificate, getSshCertificate } from './ssh-steps.js';
import type { ScenarioContext, Step } from './step.js';

/** The steps of the demo in order, from a user without a key to a user whose access has ended. */
export const STEPS: readonly Step[] = [
  { name: 'sign in upstream', run: signInUpstream },
  { name: 'enroll the software key', run: enrollSoftwareKey },
  { name: 'log in with the key', run: logInAgain },
  { name: 'list the keys', run: listKeys },
  { name: 'get an SSH certificate', run: getSshCertificate },
  { name: 'check it against the CA key', run: checkSshCertificate },
  { name: 'get AWS credentials', run: getAwsCredentials },
  { name: 'sign in to an application', run: signInToApplication },
  { name: 'approve the command line', run: approveCommandLine },
  { name: 'provision a colleague by SCIM', run: provisionColleague },
  { name: 'delete the colleague by SCIM', run: deleteColleague },
];

/** Returns the context of a new user, who has no account yet. */
export function newScenario({
  baseUrl,
  key,
  provider,
  command,
}: Pick<ScenarioContext, 'key' | 'provider' | 'command'> & {
  readonly baseUrl: string;
}): ScenarioContext {
  const email = `ada.lovelace@demo-${systemRandom.bytes(4).toString('hex')}.example`;
  return { client: new HttpClient(baseUrl, '192.0.2.5'), email, key, provider, command };
}
