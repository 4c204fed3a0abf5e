import { describe, expect, it } from 'vitest';
import { resourceProblem } from '../../../../src/features/oidc/applications/registration/cluster-registration.js';

const ORG = '00000000-0000-7000-8000-000000000001';
const OWN = {
  baseUrl: 'https://svc.example',
  awsAudience: 'https://aws.example',
  mtlsPort: 8443,
};

describe('the resource of a cluster', () => {
  it.each([
    'https://prod.k8s.example',
    'https://prod.k8s.example/',
    'https://prod.k8s.example:6443/path?x=1',
    `urn:svc:${ORG}:prod`,
    'https://svc.example:6443',
    'https://svc.example.com',
  ])('may be %s', (resource) => {
    expect(resourceProblem(resource, ORG, OWN)).toBeUndefined();
  });

  it.each([
    'https://svc.example',
    'https://svc.example:8443/x',
    'https://svc.example./',
    'https://label.svc.example',
    'https://SVC.example/v1',
    'https://svc.example:443/',
    'https://aws.example',
    'https://prod.example#',
    'https://ada@prod.example',
    'https://aws.example/',
    'sts.amazonaws.com',
    'kubernetes://prod',
    'urn:example:prod',
    'urn:svc:prod',
    `urn:svc:${ORG}:`,
    `urn:svc:${ORG}:a:b`,
    `URN:svc:${ORG}:prod`,
    'urn:svc:00000000-0000-7000-8000-000000000002:prod',
    'http://prod.example',
    'https://PROD.example',
    'https://prod.example:443/',
    'https://prod.example./',
    'https://prod.example/a/../b',
    ' https://prod.example',
    'https://prod.example/\t',
    'https://pröd.example',
    '',
  ])('is never %j', (resource) => {
    expect(resourceProblem(resource, ORG, OWN)).toEqual(expect.stringMatching(/^resource: /));
  });
});
