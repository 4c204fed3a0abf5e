import { describe, expect, it } from 'vitest';
import type { OwnMetadata } from '../../../../src/features/oidc/protocol/client-metadata.js';
import type { Client } from '../../../../src/features/oidc/protocol/library.js';
import { resourceServerOf } from '../../../../src/features/oidc/protocol/resource-servers.js';

const OWN = { baseUrl: 'https://svc.example.com', awsAudience: 'https://aws.example.com' };
const CLIENT = { scope: 'openid' } as unknown as Client & OwnMetadata;

describe('the resource that an application names', () => {
  it('may be the address of another service', () => {
    expect(resourceServerOf('https://orders.example.com', CLIENT, OWN).audience).toBe(
      'https://orders.example.com',
    );
  });

  it.each([
    ['the audience of tokens for AWS', 'https://aws.example.com'],
    ['the service itself', 'https://svc.example.com/v1'],
  ])('is never %s, so that no token of it passes for one of those', (_, resource) => {
    expect(() => resourceServerOf(resource, CLIENT, OWN)).toThrow(
      expect.objectContaining({ error: 'invalid_target' }),
    );
  });
});
