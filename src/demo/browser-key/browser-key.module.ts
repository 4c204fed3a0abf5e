import { Module, type DynamicModule } from '@nestjs/common';
import { BrowserKeyController } from './browser-key.controller.js';
import { BrowserKey } from './browser-key.js';

/**
 * Serves a software key that the demo's pages use in place of the browser's own WebAuthn interface,
 * at /static/demo/software-key.{js,css} and /demo/software-key/{create,get}. Only the demo contains
 * this module. It weakens no check of the service: a key is still refused unless the running
 * application trusts the root certificate of its attestation.
 */
@Module({})
export class BrowserKeyModule {
  static forRoot(key: BrowserKey): DynamicModule {
    return {
      module: BrowserKeyModule,
      controllers: [BrowserKeyController],
      providers: [{ provide: BrowserKey, useValue: key }],
    };
  }
}
