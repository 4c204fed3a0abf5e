import { describe, expect, it } from 'vitest';
import { TIERS } from '#platform/rate-limit/buckets/tiers.js';

describe('the tiers', () => {
  it('have the rates of the requirements', () => {
    expect(TIERS).toEqual({
      authentication: { burst: 8, interval: 2000 },
      issuance: { burst: 15, interval: 2000 },
      general: { burst: 20, interval: 1000 },
    });
  });
});
