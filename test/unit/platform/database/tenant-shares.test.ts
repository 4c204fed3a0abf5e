import { describe, expect, it } from 'vitest';
import { TenantShares } from '#platform/database/tenants/tenant-shares.js';
import { sharesOf } from '#platform/database/tenants/tenant-work.js';

const LONG = 60_000;

describe('the shares of tenants', () => {
  it('10.2 refuse a tenant that is busy itself, and other tenants when all shares are taken', async () => {
    const shares = new TenantShares(2, 1);
    const leave = await shares.take('a', LONG);
    await expect(shares.take('a', 0)).rejects.toMatchObject({ code: 'rate_limited' });
    const leaveToo = await shares.take('b', LONG);
    await expect(shares.take('c', 0)).rejects.toMatchObject({ code: 'unavailable' });
    leaveToo();
    (await shares.take('c', LONG))();
    leave();
    (await shares.take('a', LONG))();
  });

  it('10.2 serve a new tenant before the long queue of another tenant', async () => {
    const shares = new TenantShares(1, 1);
    const order: string[] = [];
    const work = async (tenant: string) => {
      const leave = await shares.take(tenant, LONG);
      order.push(tenant);
      await Promise.resolve();
      leave();
    };
    const queue = ['a', 'a', 'a', 'a'].map(work);
    await Promise.all([...queue, work('b')]);
    expect(order.indexOf('b')).toBeLessThan(2);
  });

  it('10.2 pause a tenant after its work, and serve another tenant meanwhile', async () => {
    const shares = new TenantShares(1, 1, 1000); // the longest pause
    (await shares.take('a', LONG))();
    const order: string[] = [];
    const again = shares.take('a', LONG).then(() => order.push('a'));
    (await shares.take('b', LONG))();
    order.push('b');
    await again;
    expect(order).toEqual(['b', 'a']);
  });

  it('10.2 release the share of a refused tenant', async () => {
    const shares = new TenantShares(1, 1);
    const leave = await shares.take('a', LONG);
    await expect(shares.take('b', 0)).rejects.toMatchObject({ code: 'unavailable' });
    leave();
    (await shares.take('b', LONG))();
    (await shares.take('b', LONG))();
  });
});

it.each([1, 2, 3, 5, 10, 25, 1000])(
  '10.2 of %i connections leave at least half of the main pool to other work',
  (most) => {
    const { main, bounded, costly } = sharesOf(most);
    expect(Math.min(main, bounded, costly)).toBeGreaterThan(0);
    expect(bounded).toBeLessThanOrEqual(Math.max(1, main / 2));
    expect(main + costly).toBeLessThanOrEqual(Math.max(2, most));
  },
);
