import { generateKeyPairSync } from 'node:crypto';
import type { OpenApiDocument } from '#platform/http/openapi/document-types.js';
import { SAMPLE_ORIGIN } from '#platform/http/openapi/operation-example.js';
import type { EnrolledUser } from '../app.js';
import type { Client } from '../client.js';
import { DnsServer } from '../dns-server.js';
import { dnsModule } from '../domains.js';
import { startGitHubApplication, type GitHubApplication } from '../github.js';
import { startDocumentKeyGround } from '../issuers.js';
import { requires } from '../programs.js';
import { sealKey, TestSeal } from '../seal.js';
import { Exchanges } from './exchanges.js';
import { Samples } from './samples.js';

/**
 * The service with its stand-ins, and an organization. The examples of the OpenAPI document are
 * recorded here, most of them by requests of the admin.
 */
export interface Stage extends GitHubApplication {
  readonly dns: DnsServer;
  readonly seal: TestSeal;
  /** The browser of the admin. */
  readonly admin: Client;
  /** Returns a new recorder with samples of its own. Each part of the examples needs one. */
  exchanges(): Promise<Exchanges>;
}

/** Starts the service. It has issuers of organizations if this machine has a stand-in for KMS. */
export async function startStage(): Promise<Stage> {
  const dns = await DnsServer.start();
  const kms = requires('moto').missing.length === 0 ? await startDocumentKeyGround() : undefined;
  const { privateKey } = generateKeyPairSync('ed25519');
  const application = await startGitHubApplication({
    modules: [dnsModule({ servers: [dns.address], deadline: 1500 })],
    furtherProviders: ['corp'],
    environment: {
      ...kms?.environment,
      SVC_AUDIT_SEAL_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      SVC_SECURITY_CONTACT: 'mailto:security@example.com',
    },
  });
  const { app, github, organization } = application;
  const exchanges = async (): Promise<Exchanges> => {
    await app.dataSource.query('UPDATE sessions SET auth_time = now()');
    const { json } = await app.client().get('/openapi.json');
    const text = JSON.stringify(json).replaceAll(app.baseUrl, SAMPLE_ORIGIN);
    const samples = new Samples();
    samples.learn(encodeURIComponent(app.baseUrl), encodeURIComponent(SAMPLE_ORIGIN));
    samples.learn(app.baseUrl, SAMPLE_ORIGIN);
    samples.learn(github.url, 'https://github.example');
    samples.learn(new URL(app.baseUrl).host, 'svc.example');
    samples.learn('localhost', 'svc.example');
    return new Exchanges(JSON.parse(text) as OpenApiDocument, samples, organization.admin.client);
  };
  return {
    ...application,
    dns,
    seal: new TestSeal(
      app.dataSource,
      privateKey,
      sealKey(privateKey, `${new URL(app.baseUrl).host}/audit`),
    ),
    admin: organization.admin.client,
    exchanges,
    async close() {
      await application.close();
      await kms?.close();
      await dns.close();
    },
  };
}

/**
 * Returns the value of `Authorization` that presents the session of a browser as a Bearer token.
 */
export function sessionOf(browser: Client): string {
  return `Bearer ${browser.cookie('svc_session') ?? ''}`;
}

/** A user with the id of the account. */
export type Member = EnrolledUser & { readonly id: string };
