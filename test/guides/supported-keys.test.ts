import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { guideBlock } from '../support/guide.js';

const ROOT = resolve(import.meta.dirname, '../..');

interface Model {
  readonly aaguid: string;
  readonly model: string;
  readonly policies: readonly string[];
}

const models = JSON.parse(
  readFileSync(join(ROOT, 'config/authenticator-models.json'), 'utf8'),
) as readonly Model[];
const page = readFileSync(join(ROOT, 'docs/guides/supported-keys.md'), 'utf8');

/**
 * Reads the last table of the page, and returns one model for each AAGUID, as the configuration has
 * it.
 */
function modelsOf(markdown: string): Model[] {
  const [, table = ''] = markdown.split('\n## All models\n');
  return [...table.matchAll(/^\| +(.+?) +\| +(yes|no) +\| +(yes|no) +\| +(`.+`) +\|$/gm)].flatMap(
    ([, model = '', yubikey5, fips, ids = '']) =>
      [...ids.matchAll(/`([\da-f-]+)`/g)].map(([, aaguid = '']) => ({
        aaguid,
        model,
        policies: [
          ...(fips === 'yes' ? ['fips-only'] : []),
          ...(yubikey5 === 'yes' ? ['yubikey-5'] : []),
        ],
      })),
  );
}

const byId = (one: Model, other: Model) => one.aaguid.localeCompare(other.aaguid);

describe('supported keys', () => {
  it('the table of the guide is that of the configuration, row by row', () => {
    expect(models.length).toBeGreaterThan(70);
    expect(modelsOf(page).toSorted(byId)).toEqual(
      models
        .map(({ aaguid, model, policies }) => ({ aaguid, model, policies: policies.toSorted() }))
        .toSorted(byId),
    );
  });

  /**
   * Signs a new user in, and enrolls a key of a model.
   *
   * @returns the status; for a refusal, also its code
   */
  async function enroll(app: TestApp, aaguid: string): Promise<readonly unknown[]> {
    const browser = app.client();
    await browser.signIn(`${aaguid.slice(0, 8)}@models.example`);
    const { status, json } = await browser.enroll(app.newKey({ aaguid }));
    return status === 200 ? [200] : [status, json.code];
  }

  const idOf = (policy: string) => models.find(({ policies }) => policies.includes(policy))?.aaguid;
  const withoutPolicy = models.find(({ policies }) => policies.length === 0)?.aaguid ?? '';

  it('the policy of the guide lets a certified model in and no other', async () => {
    const [name = '', value = ''] = guideBlock('supported-keys.md', 'policy').trim().split('=');
    const app = await startTestApp({ environment: { [name]: value } });
    try {
      expect(await enroll(app, idOf('fips-only') ?? '')).toEqual([200]);
      expect(await enroll(app, withoutPolicy)).toEqual([400, 'model_not_allowed']);
    } finally {
      await app.close();
    }
  });

  it('the list of the guide lets its models in and no other', async () => {
    const [name = '', value = ''] = guideBlock('supported-keys.md', 'models').trim().split('=');
    const app = await startTestApp({ environment: { [name]: value } });
    try {
      for (const aaguid of value.split(',')) expect(await enroll(app, aaguid)).toEqual([200]);
      expect(await enroll(app, withoutPolicy)).toEqual([400, 'model_not_allowed']);
    } finally {
      await app.close();
    }
  });
});
