import { Module, type DynamicModule } from '@nestjs/common';
import { BrowserKey } from '@svc/demo/browser-key';
import { BrowserKeyController } from './browser-key.controller.js';

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
