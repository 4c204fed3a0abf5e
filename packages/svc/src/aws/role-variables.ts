import { AWS_CREDENTIALS } from '../child/read-only.js';
import type { EnvironmentChange } from '../child/child-environment.js';
import type { CommandContext } from '../command/command-context.js';
import { roleCredentials } from './session/role-cache.js';
import type { RoleChoices } from './session/role-choices.js';

/**
 * Returns the variables with the credentials of a role and its region, as the AWS CLI and SDKs read
 * them. If the role has no region, the region of the environment stays.
 *
 * @throws CliFailure if the login has ended, or the server or STS refuses
 */
export async function roleVariables(
  context: CommandContext,
  choices: RoleChoices,
): Promise<EnvironmentChange> {
  const credentials = await roleCredentials(context, choices);
  const { region } = choices;
  return {
    set: {
      AWS_ACCESS_KEY_ID: credentials.AccessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.SecretAccessKey,
      AWS_SESSION_TOKEN: credentials.SessionToken,
      AWS_CREDENTIAL_EXPIRATION: credentials.Expiration,
      ...(region === undefined ? {} : { AWS_REGION: region, AWS_DEFAULT_REGION: region }),
    },
    unset: AWS_CREDENTIALS,
  };
}
