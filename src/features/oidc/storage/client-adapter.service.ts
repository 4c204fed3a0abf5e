import { Injectable } from '@nestjs/common';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { BatchedQueries } from '#domain/oauth/grants/batched-queries.service.js';
import { ClientsRepository } from '#domain/oauth/clients/clients.repository.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { noteRow } from '#platform/http/access/anonymous-row.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { OutboundHttp, type OutboundRequest } from '#platform/outbound/outbound-http.service.js';
import { libraryMetadata, secretHashesOf, storedMetadata } from '../protocol/client-metadata.js';
import { checkDynamicMetadata } from '../protocol/clients/dynamic-metadata.js';
import { errors, type Adapter, type AdapterPayload } from '../protocol/library.js';
import {
  requestOf,
  takeAhead,
  type CurrentContext,
  type HasRequest,
} from '../request/request-context.js';
import { SelfRegistrations } from './self-registrations.service.js';

type FoundClient = ReturnType<BatchedQueries['findClient']>;

/**
 * Reads OAuth clients in every request, and stores the clients that register themselves (RFC 7591,
 * RFC 7592).
 */
@Injectable()
export class ClientAdapter {
  constructor(
    private readonly dataSource: DataSource,
    private readonly batchedQueries: BatchedQueries,
    private readonly clientsRepository: ClientsRepository,
    private readonly outboundHttp: OutboundHttp,
    private readonly selfRegistrations: SelfRegistrations,
  ) {}

  /** Returns the object by which the OAuth library reads and writes clients. */
  of(currentContext: CurrentContext): Pick<Adapter, 'find' | 'upsert' | 'destroy'> {
    const origin = () => {
      const ctx = currentContext();
      if (!ctx) throw new Error('a client changes outside a request');
      noteRow(ctx.req);
      return originOf(requestOf(ctx));
    };
    return {
      find: (id) => this.#find(id, currentContext()),
      upsert: async (id, payload) => {
        const metadata = storedMetadata(payload);
        const known = await this.batchedQueries.findClient(id);
        checkDynamicMetadata(metadata, known?.metadata);
        await this.#checkAddresses(payload);
        const secret = newSecretOf(payload, known?.secretHashes ?? []);
        const registration = { id, metadata, secret, origin: origin() };
        const { jti = '' } = currentContext()?.oidc.registrationAccessToken ?? {};
        if (known) await this.selfRegistrations.update(registration, jti);
        else await this.selfRegistrations.register(registration);
      },
      destroy: (id) => this.selfRegistrations.remove(id, origin()),
    };
  }

  /** Fetches a document of a client, such as its keys, from a URL that the client chose. */
  fetch(address: string, request: OutboundRequest): Promise<Response> {
    return this.outboundHttp.fetch(address, request);
  }

  /**
   * Replaces the secret in an update of a client (RFC 7592 §2.2) by the joined hashes that the
   * OAuth library has as the client's secret. The library compares the two texts. It refuses an
   * unknown secret, which is not replaced.
   */
  async withSecretHashes(id: string, body: unknown): Promise<unknown> {
    if (typeof body !== 'object' || body === null) return body;
    const { client_secret: secret } = body as { client_secret?: unknown };
    if (typeof secret !== 'string') return body;
    const client = await this.batchedQueries.findClient(id);
    const hash = hashOpaqueToken(secret);
    if (!client?.secretHashes.some((one) => one.equals(hash))) return body;
    return { ...body, client_secret: libraryMetadata(client).client_secret };
  }

  async #find(id: string, request: HasRequest | undefined): Promise<AdapterPayload | undefined> {
    const ahead = takeAhead(request, 'Client', id) as FoundClient | undefined;
    const client = await (ahead ?? this.batchedQueries.findClient(id));
    if (!client) return undefined;
    if (!client.isUsedToday) await this.clientsRepository.touch(this.dataSource.manager, id);
    return libraryMetadata(client);
  }

  /**
   * Checks the URLs of a client to which this service would send requests.
   * @throws InvalidClientMetadata for a URL that the server may not fetch
   */
  async #checkAddresses(payload: AdapterPayload): Promise<void> {
    const addresses = {
      backchannel_logout_uri: payload['backchannel_logout_uri'],
      jwks_uri: payload['jwks_uri'],
      sector_identifier_uri: payload['sector_identifier_uri'],
    };
    for (const [name, address] of Object.entries(addresses)) {
      if (typeof address !== 'string') continue;
      try {
        await this.outboundHttp.assertAllowed(address);
      } catch (cause) {
        throw new errors.InvalidClientMetadata(`${name} is not a URL that may be fetched`, {
          cause,
        });
      }
    }
  }
}

/**
 * Returns the secret in a client's data if it is new. Returns undefined if there is none, or if the
 * data have the hashes of the present secrets instead.
 */
function newSecretOf(
  { client_secret: secret }: AdapterPayload,
  known: readonly Buffer[],
): string | undefined {
  const isKnown = secretHashesOf(secret).some((hash) => known.some((one) => one.equals(hash)));
  return isKnown ? undefined : secret;
}
