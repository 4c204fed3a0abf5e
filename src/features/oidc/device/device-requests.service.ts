import { Inject, Injectable } from '@nestjs/common';
import type { Client } from 'oidc-provider';
import { EntityManager } from 'typeorm';
import { DeviceCodesRepository, MOST_WRONG_TRIES } from '#domain/grants/device-codes.repository.js';
import type { ResourceOwner } from '#domain/grants/resource-owner.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { OwnMetadata } from '../protocol/client-metadata.js';
import { DEVICE_GRANT } from '../engine/configuration.js';
import { asksForConsent } from '../storage/grant-loader.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { deviceGrant, type DeviceGrant, type DeviceParameters } from './device-grant.js';
import { formatUserCode, normalizeUserCode } from '../protocol/user-code.js';

/** A device that waits for somebody's approval. */
export interface DeviceRequest {
  readonly id: Buffer;
  readonly client: Client & OwnMetadata;
  readonly params: DeviceParameters;
  /** Who asked for the code, as far as we saw. */
  readonly device: { readonly ip: string | null; readonly userAgent: string };
  /** What this person may allow it. */
  readonly grant: DeviceGrant;
}

/** What the approval page shows. */
export interface ApprovalPage {
  readonly userCode: string;
  readonly client: {
    readonly name: string;
    readonly isOurs: boolean;
    readonly isColleagues: boolean;
  };
  readonly device: DeviceRequest['device'];
  readonly person: { readonly email: string };
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
}

/** Devices that wait to be approved (RFC 8628 §3.3), found by the code that a person types. */
@Injectable()
export class DeviceRequests {
  readonly #baseUrl: string;
  readonly #mostWrongTries: number;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly manager: EntityManager,
    private readonly codes: DeviceCodesRepository,
    private readonly oidc: OidcProvider,
  ) {
    this.#baseUrl = config.http.baseUrl;
    // Certification test mode lifts all limits; the column is an int4.
    this.#mostWrongTries =
      config.certification.token === undefined ? MOST_WRONG_TRIES : 2 ** 31 - 1;
  }

  /**
   * @returns undefined for a code that is none, which counts against the person
   * @throws DomainError rate_limited after too many wrong ones; invalid_state for one that was decided; issuance_refused
   *   for a client that may not have what it asks for
   */
  async find(holder: ResourceOwner, typed: string): Promise<DeviceRequest | undefined> {
    const userCode = normalizeUserCode(typed);
    const tried = await this.codes.tryUserCode(
      this.manager,
      holder.userId,
      userCode,
      this.#mostWrongTries,
    );
    if (tried.kind === 'wrong') return undefined;
    if (tried.kind === 'locked') {
      const { retryAfter } = tried;
      const detail = `That were too many wrong codes. Try again in ${retryAfter} s.`;
      throw new DomainError('rate_limited', detail, { retryAfter });
    }
    const { id, clientId, payload, isDecided } = tried.request;
    if (isDecided) throw decided();
    const client: (Client & OwnMetadata) | undefined =
      await this.oidc.provider.Client.find(clientId);
    // One that registered itself has authorization codes alone, whatever it is registered with.
    if (!client?.grantTypeAllowed(DEVICE_GRANT) || client.svc_kind === 'dynamic') {
      throw new DomainError('issuance_refused', 'This application may not sign devices in.');
    }
    const { params, deviceInfo } = payload as unknown as Kept;
    const { ip = null, userAgent = '' } = deviceInfo ?? {};
    return {
      id,
      client,
      params,
      device: { ip, userAgent },
      grant: deviceGrant(params, client, holder, this.#baseUrl),
    };
  }

  /** The approval page of a code; undefined and errors as above. */
  async page(holder: ResourceOwner, typed: string): Promise<ApprovalPage | undefined> {
    const request = await this.find(holder, typed);
    if (!request) return undefined;
    const { client, device, grant } = request;
    return {
      userCode: formatUserCode(typed),
      client: {
        name: client.clientName ?? client.clientId,
        isOurs: client.svc_kind === 'first-party',
        isColleagues: !asksForConsent(client, holder),
      },
      device,
      person: { email: holder.email ?? '' },
      scopes: grant.scopes,
      resources: [...grant.resources.keys()],
    };
  }
}

/** What the library keeps of a request for a device code. */
interface Kept {
  readonly params: DeviceParameters;
  readonly deviceInfo?: { readonly ip?: string | null; readonly userAgent?: string };
}

/** The answer to whoever comes second. */
export function decided(): DomainError {
  return new DomainError(
    'invalid_state',
    'This code was approved or refused already, or has expired. Start again on the device.',
  );
}
