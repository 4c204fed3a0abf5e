import { Controller, Get, Module, Patch, Post } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route, UnmatchedPaths } from '#platform/http/routing/route.js';
import { compiledRoutes } from '../../../support/compiled-routes.js';

@UnmatchedPaths({
  '/shop/*': { tier: 'general', errors: 'problem' },
  '/shop/orders/*': { body: { max: 10 } },
})
@Module({})
class ShopModule {}

@Controller('shop/orders')
@Route({ tier: 'general', auth: PUBLIC })
class OrdersController {
  @Get()
  list() {}

  @Post()
  @Route({ tier: 'issuance', body: { kind: 'form' } })
  create() {}

  @Get(':id')
  find() {}

  @Post('search')
  search() {}

  @Patch(':id/items/:item')
  @Route({ audience: 'ui' })
  change() {}
}

describe('the table of routes', () => {
  const table = compiledRoutes(ShopModule, OrdersController);
  const tierOf = (method: string, path: string) => table.ofPath(method, path).tier;

  it('lets a handler change what its controller states, and inherits the rest from its path', () => {
    expect(table.ofPath('POST', '/shop/orders')).toMatchObject({
      tier: 'issuance',
      body: { kind: 'form', max: 10 },
      audience: 'api',
      errors: 'problem',
    });
    expect(table.ofPath('GET', '/shop/orders').body.kind).toBe('none');
  });

  it.each(['/SHOP/Orders', '/shop/orders/', '/Shop/orders/'])(
    'reads %s as the router does',
    (path) => {
      expect(tierOf('POST', path)).toBe('issuance');
    },
  );

  it('answers HEAD as GET, and another method as no handler of the path', () => {
    expect(table.ofPath('HEAD', '/shop/orders')).toBe(table.ofPath('GET', '/shop/orders'));
    expect(table.ofPath('PUT', '/shop/orders')).toMatchObject({
      tier: 'general',
      auth: PUBLIC,
      body: { kind: 'none', max: 10 },
    });
  });

  it('finds a parameter beside a fixed segment', () => {
    expect(table.ofPath('POST', '/shop/orders/search').body.kind).toBe('json');
    expect(table.ofPath('GET', '/shop/orders/search')).toBe(table.ofPath('GET', '/shop/orders/7'));
    expect(table.ofPath('PATCH', '/shop/orders/7/items/8').audience).toBe('ui');
  });

  it.each(['/shop/orders/7/items', '/shop/orders//items/8', '/shop', '/shop/orders/7/items/8/9'])(
    'does not take %s for a route, and answers by the rules of its prefix',
    (path) => {
      expect(table.ofPath('PATCH', path)).toMatchObject({ tier: 'general', audience: 'api' });
      expect(table.ofPath('PATCH', path).body.kind).toBe('none');
    },
  );

  it.each(['/', '//', '*', '', '/shopping', `/${'x/'.repeat(9000)}`])(
    'leaves %.20s to the policy of unmatched requests',
    (path) => {
      expect(table.ofPath('GET', path)).toMatchObject({ tier: 'unlimited', errors: 'negotiated' });
    },
  );

  it('does not compile a route without a tier or without a rule about its caller', () => {
    @Controller()
    class Untiered {
      @Get('untiered')
      @Route({ auth: PUBLIC })
      read() {}
    }
    @Controller()
    class Unruled {
      @Get('unruled')
      @Route({ tier: 'general' })
      read() {}
    }
    expect(() => compiledRoutes(ShopModule, Untiered)).toThrow(
      'Untiered.read (/untiered) states no tier',
    );
    expect(() => compiledRoutes(ShopModule, Unruled)).toThrow(
      'Unruled.read (/unruled) states no auth',
    );
  });

  it('does not compile routes of one path that differ before the method counts', () => {
    @Controller('two')
    @Route({ tier: 'general', auth: PUBLIC })
    class Divided {
      @Get()
      read() {}

      @Post()
      @Route({ audience: 'ui' })
      write() {}
    }
    expect(() => compiledRoutes(ShopModule, Divided)).toThrow(
      'The routes of /two must share audience',
    );
  });
});
