import {
  Controller,
  Get,
  Inject,
  Logger,
  Param,
  Req,
  Res,
  type OnModuleInit,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { extendDeadline } from '#platform/http/edge/request-deadline.js';
import { sendEncoded } from '#platform/http/request/encoded-document.js';
import { entityTag, namesTag } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Views } from '#platform/http/views/views.service.js';
import { VERSION } from '#platform/text/service-version.js';
import { commandFile } from './command-file.js';
import { readCommandRelease, type CommandRelease, type ReleasedFile } from './command-release.js';
import { DownloadSlots } from './download-slots.js';
import { installScript, type InstalledFile, type InstallFacts } from './install-script.js';
import { systemOf } from './visitor-system.js';
import { windowsScript } from './windows-script.js';

/** The bytes that a client must take in each millisecond, on average: 512 kbit/s. */
const SLOWEST = 64;

/** The milliseconds that each download of a file gets in addition to the time for its size. */
const LEAST_TIME = 30_000;

/**
 * Lets users download the `svc` command: by the page `/install`, the scripts `/install.sh` and
 * `/install.ps1`, the file `/static/svc.mjs`, and the files of a release.
 */
@Controller()
@Route({ tier: 'general', audience: 'ui', errors: 'negotiated', auth: PUBLIC })
export class InstallController implements OnModuleInit {
  readonly #server: string;
  readonly #folder: string | undefined;
  #release: CommandRelease | undefined;
  readonly #slots = new DownloadSlots();

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly views: Views,
  ) {
    this.#server = config.http.baseUrl;
    this.#folder = config.commandReleaseDir;
  }

  /**
   * Reads the files of the release when the service starts, so that a wrong file makes the start
   * fail.
   */
  async onModuleInit(): Promise<void> {
    if (this.#folder === undefined) return;
    this.#release = await readCommandRelease(this.#folder);
    const { version } = this.#release;
    if (version === VERSION) return;
    new Logger('install').warn(`SVC_CLIENT_RELEASE_DIR has svc ${version}; this is ${VERSION}`);
  }

  @Get('install')
  @Route({ errors: 'html', summary: 'Shows how to install the svc command' })
  showPage(@Req() request: Request, @Res() response: Response): void {
    const { script, executables } = this.#facts();
    response.vary('Sec-CH-UA-Platform').vary('User-Agent');
    const page = {
      server: this.#server,
      system: systemOf(request.get('sec-ch-ua-platform'), request.get('user-agent')),
      hasUnix: [...executables.keys()].some((system) => !system.startsWith('win')),
      hasWindows: executables.has('win-x64'),
      release: this.#release?.version,
      sha256: script.sha256,
      files: [script, ...executables.values()],
    };
    response.type('html').send(this.views.render('install', page));
  }

  @Get('install.sh')
  @Route({ summary: 'The script that installs the svc command' })
  sendScript(@Req() request: Request, @Res() response: Response): void {
    send(request, response, Buffer.from(installScript(this.#facts())), 'text');
  }

  @Get('install.ps1')
  @Route({ summary: 'The script that installs the svc command on Windows' })
  sendWindowsScript(@Req() request: Request, @Res() response: Response): void {
    const file = this.#facts().executables.get('win-x64');
    if (!file)
      throw new DomainError('not_found', 'This server has no svc for Windows. Ask an admin.');
    send(request, response, Buffer.from(windowsScript(this.#server, file)), 'text');
  }

  @Get('static/svc.mjs')
  @Route({ tier: 'unlimited', summary: 'The svc command, one file' })
  sendCommand(@Req() request: Request, @Res() response: Response): void {
    sendEncoded(request, response, commandFile(), 'text/javascript');
  }

  @Get('install/files/:name')
  @Route({ summary: 'A file of the release of the svc command, with SVC_CLIENT_RELEASE_DIR' })
  async sendFile(
    @Param('name') name: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const file = this.#release?.files.get(name);
    if (!file) throw new DomainError('not_found', 'This server has no such file of a release.');
    response.setHeader('ETag', `"${file.sha256}"`);
    if (namesTag(request.get('if-none-match'), `"${file.sha256}"`)) {
      response.status(304).end();
      return;
    }
    // Only the download of an executable takes a slot, because only these files are large enough
    // that a slow client keeps them open.
    if (file.system !== undefined && !this.#slots.take(request, response)) {
      const detail = 'Too many downloads run. Try again in 10 seconds.';
      throw new DomainError('rate_limited', detail, { retryAfter: 10 });
    }
    extendDeadline(response, LEAST_TIME + file.size / SLOWEST);
    await sendReleased(response, file);
  }

  /**
   * Returns the files that the install scripts offer. If a release has the script for Node, it is
   * used instead of the script of this build.
   */
  #facts(): InstallFacts {
    const released = [...(this.#release?.files.values() ?? [])];
    const executables = new Map(
      released.flatMap((file): [string, InstalledFile][] =>
        file.system === undefined ? [] : [[file.system, ofRelease(file)]],
      ),
    );
    const script = released.find(({ name }) => name.endsWith('.mjs'));
    return {
      server: this.#server,
      script: script
        ? ofRelease(script)
        : { path: '/static/svc.mjs', sha256: commandFile().sha256, isReleased: false },
      executables,
    };
  }
}

function ofRelease({ name, sha256 }: ReleasedFile): InstalledFile {
  return { path: `/install/files/${name}`, sha256, isReleased: true };
}

/**
 * Sends a file of a release from the disk, or the part that the client asks for (RFC 9110 §14).
 * Caches may keep a file for an hour, because its name contains its version. The names of the list
 * and its signature do not, so caches must ask for these again each time.
 */
function sendReleased(response: Response, { name, path }: ReleasedFile): Promise<void> {
  const isList = name.startsWith('SHA256SUMS');
  response.setHeader('Cache-Control', isList ? 'no-cache' : 'public, max-age=3600');
  response.type('application/octet-stream');
  const options = { dotfiles: 'allow', cacheControl: false, lastModified: false } as const;
  return new Promise((done, fail) => {
    response.sendFile(path, options, (error?: Error) => {
      if (!error || response.headersSent) done();
      else fail(new DomainError('not_found', 'This file is away now.', { cause: error }));
    });
  });
}

/** Sends a file with its entity tag, or 304 if the client already has the file. */
function send(request: Request, response: Response, content: Buffer, type: string): void {
  const tag = entityTag(content);
  response.setHeader('ETag', tag);
  if (namesTag(request.get('if-none-match'), tag)) response.status(304).end();
  else response.type(type).send(content);
}
