import '../support/full-scale-only.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { requiresAws } from '../support/aws-command.js';
import { startAwsWorld, type AwsPerson, type AwsWorld } from '../support/aws-person.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { requires } from '../support/programs.js';

const ROLE = 'arn:aws:iam::123456789012:role/engineer';

requiresAws.describe('the guide about a day with AWS', () => {
  let world: AwsWorld;
  let ada: AwsPerson;
  beforeAll(async () => {
    const role = { name: 'engineer', arn: ROLE, region: 'eu-central-1' };
    world = await startAwsWorld('day.example', [role]);
    ada = await world.newPerson();
    await ada.home.run(['setup', 'aws', '--yes']);
  });
  afterAll(async () => {
    await ada.home.remove();
    await world.close();
  });

  const env = () => ({
    ...ada.home.env,
    AWS_ENDPOINT_URL: world.sts.url,
    AWS_EC2_METADATA_DISABLED: 'true',
    GIT_CONFIG_NOSYSTEM: '1',
  });
  const run = (commands: string, further: Readonly<Record<string, string>> = {}) =>
    runToSuccess(commands, { cwd: ada.home.path, env: { ...env(), ...further } });
  /** Returns the ids of the access keys that the STS stand-in has issued. */
  const issuedIds = () => world.sts.sessions.map(({ accessKeyId }) => accessKeyId);
  const caller = () => `assumed-role/engineer/${ada.email}`;

  it('the profile of svc setup aws opens AWS', async () => {
    const printed = await run(guideBlock('an-engineers-day.md', 'profile'));
    expect(printed).toContain(ROLE);
    expect(printed).toContain(caller());
  });

  it('svc exec and svc aws exec give the role to a program', async () => {
    const printed = await run(guideBlock('an-engineers-day.md', 'exec'));
    expect(printed).toContain(caller());
    expect(printed).toMatch(/\neu-west-1\n$/);
  });

  it('svc aws console prints an address that signs a browser in', async () => {
    const printed = await run(guideBlock('an-engineers-day.md', 'console'));
    expect((await fetch(printed.trim())).status).toBe(200);
  });

  it('Docker’s helper answers for the registry of the role', async () => {
    const printed = await run(guideBlock('an-engineers-day.md', 'ecr'));
    expect(printed).toContain(`"Secret":"${world.sts.registryTokens.at(-1)?.password}"`);
  });

  it('the AWS CLI makes a token for EKS by the profile', async () => {
    const { status } = JSON.parse(await run(guideBlock('an-engineers-day.md', 'eks')));
    const [, url = ''] = String(status.token).split('.');
    const address = new URL(Buffer.from(url, 'base64url').toString());
    const [id] = address.searchParams.get('X-Amz-Credential')?.split('/') ?? [];
    expect(issuedIds()).toContain(id);
  });

  requires('git').describe('with git', () => {
    it('git gets a password for CodeCommit by the profile', async () => {
      const printed = await run(guideBlock('an-engineers-day.md', 'codecommit'));
      expect(issuedIds()).toContain(/^username=(\w+)%/m.exec(printed)?.[1]);
      expect(printed).toMatch(/^password=\d{8}T\d{6}Z[0-9a-f]{64}$/m);
    });
  });

  it('the AWS CLI makes a token for RDS by the profile', async () => {
    const printed = await run(guideBlock('an-engineers-day.md', 'rds'));
    expect(printed).toContain('shop.cluster-abc.eu-central-1.rds.amazonaws.com:5432/');
    expect(issuedIds()).toContain(/X-Amz-Credential=(\w+)%/.exec(printed)?.[1]);
  });

  it('a tool under --read-only reads, by a session that is limited', async () => {
    expect(await run(guideBlock('an-engineers-day.md', 'read-only'))).toContain('reports');
    expect(world.sts.sessions.at(-1)?.policyArns).toHaveLength(1);
  });
});
