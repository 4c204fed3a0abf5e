import { startSts, type RunningSts } from '@svc/stand-ins/sts';
import { startTestApp, type TestApp } from './app.js';
import { foundOrganization, type ScimOrganization } from './scim-organization.js';
import { SvcHome, type CommandEnd, type RunOptions } from './svc-command.js';
import { addTarget } from './targets.js';

/** A role of AWS that the organization lists: its name in the service, its ARN and its region. */
export interface TestRole {
  readonly name: string;
  readonly arn: string;
  readonly region?: string;
}

/** The running service, a stand-in for AWS, and an organization that lists roles of AWS. */
export interface AwsWorld {
  readonly app: TestApp;
  readonly sts: RunningSts;
  readonly organization: ScimOrganization;
  /** Creates a new member, and a home folder in which the member has logged in. */
  newPerson(): Promise<AwsPerson>;
  close(): Promise<void>;
}

/** A member of the organization, with the home folder in which the `svc` command runs. */
export interface AwsPerson {
  readonly email: string;
  readonly home: SvcHome;
  /** Runs the `svc` command, which talks to the stand-in instead of AWS. */
  run(args: readonly string[], options?: RunOptions): Promise<CommandEnd>;
  /** Deletes the member by SCIM. */
  leave(): Promise<void>;
}

/**
 * Starts an {@link AwsWorld}. Its organization lists these roles, and all its members may use them.
 */
export async function startAwsWorld(
  domain: string,
  roles: readonly TestRole[],
  app?: TestApp,
): Promise<AwsWorld> {
  const service = app ?? (await startTestApp());
  const organization = await foundOrganization(service, domain);
  for (const { name, arn, region } of roles) {
    const target = { name, roleArn: arn, ...(region === undefined ? {} : { region }) };
    await addTarget(service.dataSource, `admin@${domain}`, target);
  }
  const sts = await startSts({
    provider: { issuer: service.baseUrl, audiences: ['sts.amazonaws.com'] },
    roles: roles.map(({ arn }) => ({
      arn,
      trusts: (subject) => subject.endsWith(`@${domain}`),
      demandsRoleClaim: true,
    })),
    buckets: ['reports'],
  });
  let people = 0;
  return {
    app: service,
    sts,
    organization,
    async newPerson() {
      people += 1;
      const email = `user-${people}@${domain}`;
      const created = await organization.scim('POST', '/Users', { userName: email });
      const home = await SvcHome.create();
      await home.logIn(service, await service.enrolled(email));
      return {
        email,
        home,
        run: (args, options = {}) =>
          home.run(args, { ...options, env: { AWS_ENDPOINT_URL: sts.url, ...options.env } }),
        leave: async () => {
          await organization.scim('DELETE', `/Users/${created.json.id}`);
        },
      };
    },
    async close() {
      await sts.close();
      await service.close();
    },
  };
}
