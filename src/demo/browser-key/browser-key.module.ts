import { Module, type DynamicModule } from '@nestjs/common';
import { BrowserKeyController } from './browser-key.controller.js';
import { BrowserKey } from './browser-key.js';

/**
 * Serves a software key to browsers, in place of their own: /static/demo/software-key.{js,css} and
 * /demo/software-key/{create,get}. Only the demo contains this module. No check of the service is
 * weaker for it: the attestation of a key must still be trusted by the running composition.
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
