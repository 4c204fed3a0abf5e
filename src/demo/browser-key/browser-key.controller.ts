import { Body, Controller, Get, HttpCode, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { BrowserKey, SoftwareKeyRefusal } from '@svc/demo/browser-key';
import { DomainError } from '#platform/errors/domain-error.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { readStaticFiles } from '../../features/pages/shell/static-files.js';
import type { CreateOptions, GetOptions } from '@svc/stand-ins/software-key';
import { CREATE_OPTIONS, GET_OPTIONS } from './browser-key.schemas.js';

/**
 * Serves the script that replaces `navigator.credentials` in the demo, and the software key that
 * this script calls.
 */
@Controller()
@Route({
  tier: 'general',
  audience: 'api',
  errors: 'negotiated',
  auth: { session: 'none', origin: 'strict' },
})
export class BrowserKeyController {
  readonly #files = readStaticFiles(new URL('../static/', import.meta.url));

  constructor(private readonly key: BrowserKey) {}

  @Get('static/demo/:name')
  @Route({ tier: 'unlimited', audience: 'ui', auth: PUBLIC, summary: 'Sends a script of the demo' })
  read(@Param('name') name: string, @Res() response: Response): void {
    const file = this.#files.get(name);
    if (!file) throw new DomainError('not_found', 'There is nothing here.');
    response.type(file.type).send(file.content);
  }

  @Get('demo/software-key/accounts')
  @Route({ tier: 'unlimited', audience: 'ui', summary: 'Lists the accounts of the software key' })
  accounts() {
    return { accounts: this.key.accounts };
  }

  /** Creates a credential with the software key. Only pages of the service may call this. */
  @Post('demo/software-key/create')
  @Route({ summary: 'Creates a credential with the software key' })
  @HttpCode(200)
  create(@Body({ schema: CREATE_OPTIONS }) options: CreateOptions) {
    return answerOf(() => this.key.create(options));
  }

  @Post('demo/software-key/get')
  @Route({ summary: 'Signs with the software key' })
  @HttpCode(200)
  get(@Body({ schema: GET_OPTIONS }) options: GetOptions) {
    return answerOf(() => this.key.get(options));
  }
}

/**
 * Runs a ceremony of the software key.
 *
 * @throws DomainError invalid_request with the reason if the key refuses
 */
function answerOf<Answer>(ceremony: () => Answer): Answer {
  try {
    return ceremony();
  } catch (cause) {
    if (!(cause instanceof SoftwareKeyRefusal)) throw cause;
    throw new DomainError('invalid_request', cause.message, { cause });
  }
}
