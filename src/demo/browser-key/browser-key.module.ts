import { Module, type DynamicModule } from '@nestjs/common';
import { BrowserKeyController } from './browser-key.controller.js';
import { BrowserKey } from './browser-key.js';

/**
 * Offers a software key in place of the browser's own: /static/demo/software-key.{js,css} and
 * /demo/software-key/{create,get}. Only the demo's composition has it. It weakens no check of the
 * service, which still requires an attestation that its composition trusts.
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
