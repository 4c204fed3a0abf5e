import { z } from 'zod';
import type { OwnReach } from '#domain/account/own-reach/own-reach.js';

const texts = z.array(z.string()).readonly();

/** The answer of `GET /v1/setup`: the targets that admit the caller, such as hosts and roles. */
export const SETUP_JSON = z
  .object({
    ssh: z.array(
      z.object({
        name: z.string(),
        hosts: texts.meta({ description: 'Patterns of host names, as in ssh_config.' }),
        logins: texts,
      }),
    ),
    aws: z.array(
      z.object({ name: z.string(), role_arn: z.string(), region: z.string().nullable() }),
    ),
    kubernetes: z.array(z.object({ name: z.string(), resource: z.string() })),
    github: z.array(z.object({ owner: z.string() })),
    applications: z.array(
      z.object({
        name: z.string(),
        launch_url: z
          .string()
          .nullable()
          .meta({ description: 'The `initiate_login_uri`, if an admin approved its origin.' }),
      }),
    ),
    changed_at: z.iso.datetime().meta({
      description: 'When a reading first found this list. It changes with every change of it.',
    }),
  })
  .meta({ id: 'Setup' });
/** The answer of `GET /v1/setup`. */
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
