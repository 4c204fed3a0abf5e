import { describe, expect, it } from 'vitest';
import { resourceProblem } from '../../../../src/features/oidc/applications/registration/cluster-registration.js';

const OWN = { baseUrl: 'https://svc.example', awsAudience: 'https://aws.example' };

describe('the resource of a cluster', () => {
  it.each([
    'https://prod.k8s.example',
    'https://prod.k8s.example:6443/path?x=1',
    'kubernetes://prod',
    'urn:example:prod',
    'https://svc.example:6443',
    'https://svc.example.com',
  ])('may be %s', (resource) => {
    expect(resourceProblem(resource, OWN)).toBeUndefined();
  });

  it.each([
    'https://svc.example',
    'https://SVC.example/v1',
    'https://svc.example:443/',
    'https://aws.example',
    'https://prod.example#',
    'https://ada@prod.example',
    'sts.amazonaws.com',
    ' https://prod.example',
    'https://prod.example/\t',
    'https://pröd.example',
    '',
  ])('is never %j', (resource) => {
    expect(resourceProblem(resource, OWN)).toEqual(expect.stringMatching(/^resource: /));
  });
});
