import { Inject, Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { errors } from 'oidc-provider';
import { artifactId } from '#domain/grants/artifact.js';
import { DeviceCodesRepository } from '#domain/grants/device-codes.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';

/** How often a device may ask (RFC 8628 §3.5). */
@Injectable()
export class DevicePolls {
  readonly #interval: number;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly manager: EntityManager,
    private readonly codes: DeviceCodesRepository,
  ) {
    this.#interval = config.oidc.deviceCode.pollIntervalSeconds;
  }

  /** Counts a request with a device code. @throws SlowDown when it came too soon: from then on it waits longer */
  async count(deviceCode: string): Promise<void> {
    const isTooSoon = await this.codes.poll(this.manager, artifactId(deviceCode), this.#interval);
    if (isTooSoon) throw new errors.SlowDown();
  }
}
