import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { startCollected, type CollectedProcess } from '../collected-process.js';
import { DEBIAN_ROOT, findProgram, IMAGE_BUILDER } from '../programs.js';
import { removeDirectory } from '../temporary-directory.js';

/** The name of the image that stands for Node's official image, which no test can download. */
const BASE = 'localhost/node-base';

/** Folders of Debian that are not in an image, because no program reads them. */
const NOT_IN_IMAGES = ['usr/share/doc', 'usr/share/locale', 'usr/share/man', 'var/cache/apt'];

/**
 * The file with the certificate authorities of this machine, by which npm trusts the registry or
 * its mirror.
 */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

const BASE_FILE = `FROM scratch
ADD base.tar /
COPY ca-certificates.crt ${AUTHORITIES}
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
  && mkdir -p /usr/local/etc && echo cafile=${AUTHORITIES} >/usr/local/etc/npmrc \\
  && groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["node"]
`;

/** The configuration of an image, in Docker's format. */
export interface ImageConfiguration {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint?: readonly string[] | null;
  readonly Cmd: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

/**
 * Builds images with Buildah as an unprivileged user, without a daemon. The images are deleted when
 * the test disposes `parts`.
 */
export class ImageBuilder {
  private constructor(
    private readonly parts: AsyncDisposableStack,
    readonly folder: string,
  ) {}

  /**
   * Makes the folder for the images, which belongs to {@link IMAGE_BUILDER}. Only root can do this.
   */
  static create(parts: AsyncDisposableStack): ImageBuilder {
    // The folder is on the disk and not in memory, because each image is a copy of a whole root.
    const folder = mkdtempSync('/var/tmp/svc-image-');
    const builder = new ImageBuilder(parts, folder);
    // Root must delete the folder, because files in images belong to other user ids, which the
    // account may use only in its user namespace.
    parts.defer(() => removeDirectory(folder));
    for (const name of ['home', 'run', 'tmp']) mkdirSync(join(folder, name));
    execFileSync('chown', ['-R', `${IMAGE_BUILDER}:`, folder]);
    return builder;
  }

  /**
   * Starts commands of sh as the unprivileged user. They are stopped when the test disposes
   * `within`.
   */
  start(commands: string, within = this.parts): CollectedProcess {
    const { folder } = this;
    const identity = ['--reuid', IMAGE_BUILDER, '--regid', IMAGE_BUILDER, '--init-groups'];
    return startCollected(
      within,
      ['setpriv', ...identity, 'sh', '-euc', commands],
      {
        HOME: join(folder, 'home'),
        XDG_RUNTIME_DIR: join(folder, 'run'),
        TMPDIR: join(folder, 'tmp'),
        STORAGE_DRIVER: 'vfs',
        BUILDAH_ISOLATION: 'chroot',
      },
      { cwd: folder },
    );
  }

  /**
   * Runs commands of sh as the unprivileged user.
   * @returns the output of both streams
   * @throws Error if a command fails
   */
  async run(commands: string): Promise<string> {
    const { ended, output } = this.start(commands);
    const status = await ended;
    if (status !== 0) throw new Error(`status ${status} of\n${commands}\n${output()}`);
    return output();
  }

  /**
   * Makes the image that replaces Node's official one. It has Debian, this machine's Node and npm,
   * a user `node`, and an entrypoint that does not exist.
   *
   * @returns the name of the image
   */
  async makeBase(): Promise<string> {
    const context = join(this.folder, 'base');
    mkdirSync(context);
    const archive = join(context, 'base.tar');
    const excluded = NOT_IN_IMAGES.map((path) => `--exclude=./${path}`);
    const devices = ['dev', 'proc', 'sys'].map((path) => `--exclude=./${path}/*`);
    const append = (from: string, to: string, path: string) => {
      const place = ['--owner=0', '--group=0', `--transform=s,^\\.,./${to},`];
      execFileSync('tar', ['-C', from, ...place, '-rf', archive, path]);
    };
    execFileSync('tar', ['-C', DEBIAN_ROOT, ...excluded, ...devices, '-cf', archive, '.']);
    append(dirname(dirname(realpathSync(process.execPath))), 'usr/local', './bin/node');
    const npm = dirname(dirname(realpathSync(findProgram('npm') ?? '')));
    append(npm, 'usr/local/lib/node_modules/npm', '.');
    writeFileSync(join(context, 'Containerfile'), BASE_FILE);
    // On a machine without this file, npm uses the authorities that Node itself contains.
    const authorities = existsSync(AUTHORITIES) ? readFileSync(AUTHORITIES) : '';
    writeFileSync(join(context, 'ca-certificates.crt'), authorities);
    await this.run(`buildah build --layers=false --quiet --tag ${BASE} base`);
    return BASE;
  }

  /** Returns the configuration of an image. */
  async configurationOf(image: string): Promise<ImageConfiguration> {
    const text = await this.run(`buildah inspect --type image ${image}`);
    const { Docker } = JSON.parse(text) as { Docker: { config: ImageConfiguration } };
    return Docker.config;
  }
}
