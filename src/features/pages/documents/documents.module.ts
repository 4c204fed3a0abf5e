import { Module, type OnModuleInit } from '@nestjs/common';
import { HttpModule } from '#platform/http/http.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { DocumentsController } from './documents.controller.js';
import { ManualController } from './manual/manual.controller.js';

@UnmatchedPaths({
  '/docs/*': { tier: 'general', audience: 'ui' },
  '/errors/*': { tier: 'general', audience: 'ui' },
})
@Module({ imports: [HttpModule], controllers: [DocumentsController, ManualController] })
export class DocumentPagesModule implements OnModuleInit {
  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    for (const folder of ['views/', 'manual/views/']) {
      this.views.register(new URL(folder, import.meta.url));
    }
  }
}
