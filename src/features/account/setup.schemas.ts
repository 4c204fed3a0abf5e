import { z } from 'zod';
import type { OwnReach } from '#domain/account/own-reach/own-reach.js';

const texts = z.array(z.string()).readonly();
const label = z.string();

/** The answer of `GET /v1/setup`: the targets that admit the caller, such as hosts and roles. */
export const SETUP_JSON = z
  .object({
    ssh: z
      .array(
        z.object({
          name: label.describe('The name of the group of hosts.'),
          hosts: texts.meta({ description: 'Patterns of host names, as in ssh_config.' }),
          logins: texts.describe('The login names on these hosts.'),
        }),
      )
      .describe('The groups of hosts.'),
    aws: z
      .array(
        z.object({
          name: label.describe('The name of the role, for a profile of the AWS CLI.'),
          role_arn: z.string().describe('The ARN of the role.'),
          region: z.string().nullable().describe('The region that an admin chose.'),
        }),
      )
      .describe('The roles of AWS.'),
    kubernetes: z
      .array(
        z.object({
          name: label.describe('The name of the cluster.'),
          resource: z.string().describe('The audience of the tokens for its API server.'),
        }),
      )
      .describe('The Kubernetes clusters.'),
    github: z
      .array(z.object({ owner: z.string().describe('The organization or user of GitHub.') }))
      .describe('The installations of the GitHub App.'),
    applications: z
      .array(
        z.object({
          name: label.describe('The name of the application.'),
          launch_url: z
            .string()
            .nullable()
            .meta({ description: 'The `initiate_login_uri`, if an admin approved its origin.' }),
        }),
      )
      .describe('The applications.'),
    changed_at: z.iso.datetime().meta({
      description: 'When a reading first found this list. It changes with every change of it.',
    }),
  })
  .meta({ id: 'Setup', description: 'The targets that admit the user.' });
/** The type of the answer of `GET /v1/setup`, by which the compiler checks answers. */
export type SetupJson = z.output<typeof SETUP_JSON>;

/**
 * Renders the targets that admit a person, such as hosts and roles. The rules by which they admit
 * the person are left out, because programs do not need them.
 */
export function setupJson(reach: OwnReach, changedAt: Date): SetupJson {
  return {
    ssh: reach.hosts.map(({ name, hosts, logins }) => ({ name, hosts, logins })),
    aws: reach.roles.map(({ name, roleArn, region }) => ({ name, role_arn: roleArn, region })),
    kubernetes: reach.clusters.map(({ name, resource }) => ({ name, resource })),
    github: reach.owners.map(({ owner }) => ({ owner })),
    applications: reach.applications.map(({ name, launchUrl }) => ({
      name,
      launch_url: launchUrl,
    })),
    changed_at: changedAt.toISOString(),
  };
}
