import { Injectable } from '@nestjs/common';
import { DataSource, EntityManager } from 'typeorm';
import { Provider, errors, type Adapter, type AdapterPayload } from 'oidc-provider';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { ClientSecretsRepository } from '#domain/grants/client-secrets.repository.js';
import { ClientsRepository } from '#domain/grants/clients.repository.js';
import { BatchedQueries } from '#domain/grants/batched-queries.service.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { libraryMetadata, secretHashesOf, storedMetadata } from '../protocol/client-metadata.js';
import { checkDynamicMetadata } from '../protocol/clients/dynamic-metadata.js';
import { SelfRegistrations } from './self-registrations.service.js';
import { requestOf } from '../request/request-context.js';

/** Clients as the library finds them, anew in every request; and those that register themselves (RFC 7591, RFC 7592). */
@Injectable()
export class ClientAdapter implements Pick<Adapter, 'find' | 'upsert' | 'destroy'> {
  constructor(
    private readonly manager: EntityManager,
    private readonly dataSource: DataSource,
    private readonly statements: BatchedQueries,
    private readonly clients: ClientsRepository,
    private readonly secrets: ClientSecretsRepository,
    private readonly audit: AuditLog,
    private readonly outbound: OutboundHttp,
    private readonly registrations: SelfRegistrations,
  ) {}

  readonly find = async (id: string): Promise<AdapterPayload | undefined> => {
    const client = await this.statements.findClient(id);
    if (!client) return undefined;
    if (!client.isUsedToday) await this.clients.touch(this.manager, id);
    return libraryMetadata(client);
  };

  /** Registers a client that asks for it, or changes one that manages itself. */
  readonly upsert = async (id: string, payload: AdapterPayload): Promise<void> => {
    checkDynamicMetadata(storedMetadata(payload));
    await this.#checkAddresses(payload);
    const known = await this.statements.findClient(id);
    const metadata = storedMetadata(payload);
    const secret = payload.client_secret;
    // The hashes of the secrets it has stand in place of one: whatever else comes is a new one.
    const isNewSecret =
      secret !== undefined &&
      !secretHashesOf(secret).some((hash) => known?.secretHashes.some((one) => one.equals(hash)));
    const complete = async (tx: EntityManager) => {
      if (!needsSecret(metadata)) await this.secrets.removeAll(tx, id);
      else if (isNewSecret) await this.clients.addSecret(tx, id, hashOpaqueToken(secret));
      await this.#record(tx, known ? 'oauth_client_updated' : 'oauth_client_registered', id);
    };
    if (!known) {
      await this.registrations.register(id, metadata, currentOrigin(), complete);
      return;
    }
    await this.dataSource.transaction(async (tx) => {
      await this.clients.update(tx, id, metadata);
      await complete(tx);
    });
  };

  readonly destroy = async (id: string): Promise<void> => {
    await this.dataSource.transaction(async (tx) => {
      if (await this.clients.remove(tx, id)) await this.#record(tx, 'oauth_client_deleted', id);
    });
  };

  /**
   * What a client sends of itself, with what stands for its secret in place of the secret it has (RFC 7592 §2.2): the
   * library compares the two. A secret that is none of the client's stays, and is refused.
   */
  async withSecretHashes(id: string, body: unknown): Promise<unknown> {
    if (typeof body !== 'object' || body === null) return body;
    const { client_secret: secret } = body as { client_secret?: unknown };
    if (typeof secret !== 'string') return body;
    const client = await this.statements.findClient(id);
    const hash = hashOpaqueToken(secret);
    if (!client?.secretHashes.some((one) => one.equals(hash))) return body;
    return { ...body, client_secret: libraryMetadata(client).client_secret };
  }

  /** @throws InvalidClientMetadata when an address that we would fetch is none that we may */
  async #checkAddresses(payload: AdapterPayload): Promise<void> {
    const addresses = {
      jwks_uri: payload['jwks_uri'],
      sector_identifier_uri: payload['sector_identifier_uri'],
    };
    for (const [name, address] of Object.entries(addresses)) {
      if (typeof address !== 'string') continue;
      try {
        await this.outbound.assertAllowed(address);
      } catch (cause) {
        throw new errors.InvalidClientMetadata(`${name} is not an address that may be fetched`, {
          cause,
        });
      }
    }
  }

  async #record(
    tx: EntityManager,
    type: 'oauth_client_registered' | 'oauth_client_updated' | 'oauth_client_deleted',
    clientId: string,
  ): Promise<void> {
    await this.audit.record(tx, {
      type,
      actorId: null,
      subjectId: null,
      orgId: null,
      origin: currentOrigin(),
      details: { client_id: clientId },
    });
  }
}

/** Where the request came from that the library is answering. */
function currentOrigin(): AuditOrigin {
  const ctx = Provider.ctx;
  if (!ctx) throw new Error('a client changes outside a request');
  return originOf(requestOf(ctx));
}

/** Whether a client of this metadata proves itself with a secret: unless it says otherwise (RFC 7591 §2). */
function needsSecret(metadata: object): boolean {
  const { token_endpoint_auth_method: method = 'client_secret_basic' } = metadata as {
    token_endpoint_auth_method?: string;
  };
  return method.startsWith('client_secret');
}
