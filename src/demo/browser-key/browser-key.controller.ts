import { Body, Controller, Get, HttpCode, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Access, Public } from '#platform/http/access.js';
import { BodyLimit } from '#platform/http/body-limits.js';
import { readStaticFiles, type StaticFile } from '../../features/pages/static-files.js';
import type { CreateOptions, GetOptions } from '../software-key.js';
import { BrowserKey } from './browser-key.js';
import { CREATE_OPTIONS, GET_OPTIONS } from './browser-key.schemas.js';

/** The script that stands in for `navigator.credentials`, and the key that answers it. */
@Controller('demo')
@Public()
@BodyLimit('webauthn')
export class BrowserKeyController {
  readonly #files = readStaticFiles(new URL('../static/', import.meta.url));

  constructor(private readonly key: BrowserKey) {}

  @Get('software-key.js')
  script(@Res() response: Response): void {
    this.#send(response, 'software-key.js');
  }

  @Get('software-key.css')
  style(@Res() response: Response): void {
    this.#send(response, 'software-key.css');
  }

  /** Our own pages alone may use the key, as if it were plugged in. */
  @Post('software-key/create')
  @Access({ session: 'none', origin: 'own' })
  @HttpCode(200)
  create(@Body({ schema: CREATE_OPTIONS }) options: CreateOptions) {
    return this.key.create(options);
  }

  @Post('software-key/get')
  @Access({ session: 'none', origin: 'own' })
  @HttpCode(200)
  get(@Body({ schema: GET_OPTIONS }) options: GetOptions) {
    return this.key.get(options);
  }

  #send(response: Response, name: string): void {
    const { type, content } = this.#files.get(name) as StaticFile; // a file of the build
    response.type(type).send(content);
  }
}
