import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ENVIRONMENT, PROVIDER_ENVIRONMENT } from '../../src/platform/config/environment.js';

const folder = new URL('../../helm/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, folder), 'utf8');
const templates = readdirSync(new URL('templates/', folder)).map((name) =>
  read(`templates/${name}`),
);
const chart = [read('values.yaml'), ...templates].join('\n');

/** What belongs in the Secret, and never in values. */
const SECRETS = ['SVC_DATABASE_URL', 'SVC_JWT_SECRET', 'SVC_JWT_SECRET_PREVIOUS', 'SVC_SSH_CA_KEY'];

function isKnown(name: string): boolean {
  const ofProvider = /^SVC_IDP_(?:<SLUG>)?_?([A-Z_]*)$/.exec(name)?.[1];
  if (ofProvider !== undefined) {
    return ofProvider === '' || Object.hasOwn(PROVIDER_ENVIRONMENT.shape, ofProvider);
  }
  return Object.hasOwn(ENVIRONMENT.shape, name);
}

describe('the Helm chart', () => {
  it('names only variables that the service knows', () => {
    const named = [...new Set(chart.match(/\bSVC_[A-Z_]+(?:<SLUG>_[A-Z_]+)?/g))];
    expect(named).toContain('SVC_BASE_URL');
    expect(named).toContain('SVC_IDP_<SLUG>_CLIENT_SECRET');
    // Service links: what the chart keeps out of the environment, not what it puts there.
    expect(named.filter((name) => name !== 'SVC_PORT' && !isKnown(name))).toEqual([]);
  });

  it('lets every variable that has an effect be set, and no secret in values', () => {
    const schema = JSON.parse(read('values.schema.json'));
    const allowed = Object.keys(schema.properties.config.properties);
    expect(allowed.filter((name) => !Object.hasOwn(ENVIRONMENT.shape, name))).toEqual([]);
    expect(allowed.filter((name) => SECRETS.includes(name))).toEqual([]);
    expect(schema.properties.config.additionalProperties).toBe(false);
  });

  it('takes every secret from the Secret that the operator made', () => {
    const deployment = read('templates/deployment.yaml');
    expect(deployment.match(/secretKeyRef:/g)).toHaveLength(2);
    expect(chart).not.toMatch(/^kind: Secret$/m);
    const helpers = read('templates/_helpers.tpl');
    for (const name of SECRETS.filter((secret) => !secret.endsWith('PREVIOUS'))) {
      expect(helpers).toMatch(new RegExp(`^${name}$`, 'm'));
    }
  });

  it('runs as nobody in particular, with nothing it does not need', () => {
    const deployment = read('templates/deployment.yaml');
    for (const line of [
      'runAsNonRoot: true',
      'readOnlyRootFilesystem: true',
      'allowPrivilegeEscalation: false',
      'drop: [ALL]',
      'automountServiceAccountToken: false',
    ]) {
      expect(deployment).toContain(line);
    }
  });

  it('probes paths that exist', () => {
    const paths = [...read('templates/deployment.yaml').matchAll(/path: (\S+)/g)].map(
      ([, path]) => path,
    );
    expect(new Set(paths)).toEqual(new Set(['/health', '/health/ready']));
    const controller = readFileSync(
      new URL('../../src/features/health/health.controller.ts', import.meta.url),
      'utf8',
    );
    expect(controller).toContain("@Controller('health')");
    expect(controller).toContain("@Get('ready')");
  });
});
