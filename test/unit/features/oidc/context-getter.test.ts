import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { patchProvider } from '../../../../src/features/oidc/engine/library-patches.js';

describe('the context of a request of the OAuth library', () => {
  const provider = new Provider('http://localhost');
  const server = createServer((request, response) => void provider.callback()(request, response));
  let url: string;
  beforeAll(async () => {
    patchProvider(
      provider,
      () => [],
      () => Promise.resolve(true),
    );
    url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  });
  afterAll(() => stopServer(server));

  it('has no getter of its own, which V8 would allocate in its old generation', async () => {
    const seen: { readonly own: PropertyDescriptor | undefined; readonly route: string }[] = [];
    provider.use(async (ctx, next) => {
      await next();
      const own = Object.getOwnPropertyDescriptor(ctx, 'oidc');
      seen.push({ own, route: (ctx as unknown as { oidc: { route: string } }).oidc.route });
    });
    const [first, second] = await Promise.all([
      fetch(`${url}/.well-known/openid-configuration`),
      fetch(`${url}/jwks`),
    ]);
    expect([first?.status, second?.status]).toEqual([200, 200]);
    expect(seen.map(({ own }) => own)).toEqual([undefined, undefined]);
    expect(seen.map(({ route }) => route).toSorted()).toEqual(['discovery', 'jwks']);
  });

  it('gives one object for all reads in one request, and none before the library made it', () => {
    const { req, res } = { req: { headers: {} }, res: {} };
    const context = provider.createContext(req as never, res as never) as unknown as {
      oidc: unknown;
    };
    expect(context.oidc).toBeUndefined();
    const made = { route: 'x' };
    Object.defineProperty(context, 'oidc', { get: () => made });
    expect(context.oidc).toBe(made);
    expect(Object.getOwnPropertyDescriptor(context, 'oidc')).toBeUndefined();
  });
});
