import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accessExamples } from '../support/api-examples/parts/access.js';
import { accountExamples } from '../support/api-examples/parts/account.js';
import { applicationExamples } from '../support/api-examples/parts/applications.js';
import { credentialExamples } from '../support/api-examples/parts/credentials.js';
import { issuerExamples } from '../support/api-examples/parts/issuer.js';
import { memberExamples } from '../support/api-examples/parts/members.js';
import { oauthExamples } from '../support/api-examples/parts/oauth.js';
import { organizationExamples } from '../support/api-examples/parts/organization.js';
import { receiverExamples } from '../support/api-examples/parts/receivers.js';
import { scimExamples } from '../support/api-examples/parts/scim.js';
import { tokenExamples } from '../support/api-examples/parts/tokens.js';
import { startStage, type Stage } from '../support/api-examples/stage.js';
import { requires } from '../support/programs.js';

let stage: Stage;

beforeAll(async () => {
  stage = await startStage();
});

afterAll(() => stage.close());

/** Runs some of the example requests, and expects that their record equals the file of examples. */
async function expectReplayed(
  name: string,
  part: (stage: Stage) => Promise<string>,
): Promise<void> {
  const file = `../../src/features/openapi/examples/${name}.json`;
  // If an example changes, `npx vitest run test/api/openapi-examples.test.ts -u` writes the file.
  await expect(await part(stage)).toMatchFileSnapshot(file);
}

describe('the examples of the document', () => {
  it.each([
    ['account', accountExamples],
    ['credentials', credentialExamples],
    ['applications', applicationExamples],
    ['organization', organizationExamples],
    ['tokens', tokenExamples],
    ['receivers', receiverExamples],
    ['access', accessExamples],
    ['scim', scimExamples],
    ['oauth', oauthExamples],
    ['members', memberExamples],
  ])('are requests that get the answers which they show: %s', expectReplayed);
});

requires('moto').describe('the examples of the issuer of an organization', () => {
  it('are requests that get the answers which they show', async () => {
    await expectReplayed('issuer', issuerExamples);
  });
});
