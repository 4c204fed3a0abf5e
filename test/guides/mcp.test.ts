import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  Client as McpClient,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { guideBlock } from '../support/guide.js';
import { authorize } from '../support/oauth-flow.js';
import { rows } from '../support/rows.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const ADA = 'ada@mcp-guide.example';
const CALLBACK = 'http://localhost:33418/callback';

/**
 * The state of one MCP client: its registration, its tokens, and the URL that it opened in a
 * browser.
 */
class StoredState implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadata = {
    client_name: 'Editor',
    redirect_uris: [CALLBACK],
    token_endpoint_auth_method: 'none',
  };
  client: StoredOAuthClientInformation | undefined;
  stored: StoredOAuthTokens | undefined;
  opened: URL | undefined;
  #discovered: OAuthDiscoveryState | undefined;
  #verifier = '';

  clientInformation = () => this.client;
  saveClientInformation = (client: StoredOAuthClientInformation) => {
    this.client = client;
  };
  tokens = () => this.stored;
  saveTokens = (tokens: StoredOAuthTokens) => {
    this.stored = tokens;
  };
  redirectToAuthorization = (url: URL) => {
    this.opened = url;
  };
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier;
  };
  codeVerifier = () => this.#verifier;
  saveDiscoveryState = (found: OAuthDiscoveryState) => {
    this.#discovered = found;
  };
  discoveryState = () => this.#discovered;
}

describe('the MCP server of the guide', () => {
  let app: TestApp;
  let ada: Client;
  let server: { readonly url: string; readonly stop: () => Promise<void> };

  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled(ADA));
    server = await startServer();
  });

  afterAll(async () => {
    await server.stop();
    await app.close();
  });

  /** Runs the server program of the guide unchanged, for the organization of Ada. */
  async function startServer() {
    const folder = await makeTemporaryDirectory();
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'server.mjs'), guideBlock('applications/mcp.md', 'server'));
    const port = await freePort();
    const url = `http://localhost:${port}/mcp`;
    const [member] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      [ADA],
    );
    const child = spawn(process.execPath, ['server.mjs'], {
      cwd: folder,
      env: {
        ISSUER: app.baseUrl,
        RESOURCE: url,
        ORGANIZATION: member?.org_id ?? '',
        PORT: String(port),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
    const ended = once(child, 'close');
    while (!(await fetch(url).catch(() => undefined))) {
      if (child.exitCode !== null) throw new Error(`the MCP server ended: ${output}`);
      await delay(20);
    }
    return {
      url,
      stop: async () => {
        child.kill('SIGKILL');
        await ended;
        await removeDirectory(folder);
      },
    };
  }

  /**
   * Returns the transport of an MCP client. Each of its requests comes from an IP address of its
   * own.
   */
  function transportOf(state: StoredState): StreamableHTTPClientTransport {
    return new StreamableHTTPClientTransport(new URL(server.url), {
      authProvider: state,
      fetch: (url, init) => {
        const headers = new Headers(init?.headers);
        headers.set('x-forwarded-for', newAddress());
        return fetch(url, { ...init, headers });
      },
    });
  }

  const newClient = () => new McpClient({ name: 'editor', version: '1.0.0' });

  /**
   * Tries to connect, which fails for lack of a token. `state.opened` then has the URL for the
   * browser.
   */
  async function begin(state: StoredState): Promise<StreamableHTTPClientTransport> {
    const transport = transportOf(state);
    await expect(newClient().connect(transport)).rejects.toBeInstanceOf(UnauthorizedError);
    return transport;
  }

  /**
   * Gets a token for a new client: it registers, the user consents in a browser, and it redeems the
   * code.
   */
  async function tokenFor(browser: Client): Promise<StoredState> {
    const state = new StoredState();
    const transport = await begin(state);
    const callback = await authorize(browser, Object.fromEntries(state.opened?.searchParams ?? []));
    await transport.finishAuth(callback.searchParams);
    return state;
  }

  it('is called by a client that knew its address alone, after discovery, registration and consent', async () => {
    const state = await tokenFor(ada);
    const client = newClient();
    await client.connect(transportOf(state));
    const { content } = await client.callTool({ name: 'whoami', arguments: {} });
    expect(content).toEqual([{ type: 'text', text: ADA }]);
    await client.close();

    const asked = state.opened?.searchParams;
    expect(asked?.get('code_challenge_method')).toBe('S256');
    expect(asked?.get('resource')).toBe(server.url);
    expect(state.stored?.refresh_token).toBeUndefined();
    const claims = decodeJwt(state.stored?.access_token ?? '');
    expect(claims).toMatchObject({ aud: server.url, hardware_verified: true, email: ADA });
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(300);
    const [registered] = await rows(
      app.dataSource,
      'SELECT kind FROM oauth_clients WHERE id = $1',
      [state.client?.client_id],
    );
    expect(registered).toEqual({ kind: 'dynamic' });
    const own = await app.client().get('/v1/keys', {
      headers: { authorization: `Bearer ${state.stored?.access_token}` },
    });
    expect(own.status).toBe(401);
  });

  it('refuses a call without a token, and a token of another organization', async () => {
    const { status, headers } = await fetch(server.url, { method: 'POST' });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toContain('/.well-known/oauth-protected-resource/mcp');

    const { client: eve } = await app.enrolled('eve@another-mcp-guide.example');
    const state = await tokenFor(eve);
    expect(decodeJwt(state.stored?.access_token ?? '').aud).toBe(server.url);
    await begin(state);
  });

  /**
   * Follows the redirects of an authorization until a page or the callback. Returns the last URL.
   */
  async function followed(url: URL | undefined): Promise<string> {
    let next = url?.href ?? '';
    for (let hops = 0; hops < 6 && !next.startsWith(CALLBACK); hops += 1) {
      const { headers } = await ada.get(next, { address: newAddress() });
      const location = headers.get('location');
      if (location === null) return next;
      next = location;
    }
    return next;
  }

  it('is reached again after a question, or without one by a registered native application', async () => {
    const again = await tokenFor(ada);
    again.stored = undefined;
    await begin(again);
    expect(await followed(again.opened)).toMatch(/^\/interaction\//);

    const registered = await ada.post(
      '/api/v1/applications',
      { name: 'Editors', type: 'native', redirect_uris: [CALLBACK] },
      { address: newAddress() },
    );
    expect(registered.status, registered.text).toBe(201);
    const state = new StoredState();
    state.client = { client_id: registered.json.client_id as string };
    const transport = await begin(state);
    const callback = await followed(state.opened);
    expect(callback).toContain(CALLBACK);
    await transport.finishAuth(new URL(callback).searchParams);
    const client = newClient();
    await client.connect(transportOf(state));
    const { content } = await client.callTool({ name: 'whoami', arguments: {} });
    expect(content).toEqual([{ type: 'text', text: ADA }]);
    await client.close();
  });
});
