import { READY } from '@svc/demo/people';
import { Client } from '../client.js';
import { startDemoProcess, type DemoProcess } from '../demo-process.js';

/**
 * A running demo. A test generates an API client from its OpenAPI document, and runs the client
 * against it.
 */
export interface ClientGround {
  readonly running: DemoProcess;
  /** The OpenAPI document that the demo serves, as a text. */
  readonly document: string;
  /** Logs the demo's admin in with the software key, and returns the token of the session. */
  adminSession(): Promise<string>;
}

/** Starts the demo in a folder, and fetches its OpenAPI document. */
export async function startClientGround(folder: string): Promise<ClientGround> {
  const running = await startDemoProcess(folder);
  const { text } = await new Client(running.baseUrl).get('/openapi.json');
  return {
    running,
    document: text,
    async adminSession() {
      const browser = new Client(running.baseUrl);
      await browser.signIn(READY.admin.email);
      const { state, publicKey } = (await browser.post('/login/webauthn/start', {})).json;
      const { json: credential } = await browser.post('/demo/software-key/get', publicKey);
      await browser.post('/login/webauthn/complete', { state, credential });
      return browser.cookie('svc_session') ?? '';
    },
  };
}
