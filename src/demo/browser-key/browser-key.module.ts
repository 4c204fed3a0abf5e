import { Module, type DynamicModule } from '@nestjs/common';
import { BrowserKeyController } from './browser-key.controller.js';
import { BrowserKey } from './browser-key.js';

/**
 * /static/demo/software-key.js, .css, /demo/software-key/create and get: a software key in the place of the browser's own, for
 * whoever leaves the choice on the page on. Only the demo's composition has it; it weakens nothing of what the service
 * checks, since the service still asks for an attestation that its composition trusts.
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
