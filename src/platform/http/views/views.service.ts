import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Inject, Injectable } from '@nestjs/common';
import { Eta } from 'eta';
import { CONFIG, type Config } from '#platform/config/config.js';

/**
 * The injection token of the scripts that a composition root, such as that of the demo, adds to
 * every page. Production adds none.
 */
export const PAGE_SCRIPTS = Symbol('scripts added to every page');

/**
 * The compiled templates of this process by their file, for all applications that it starts. The
 * files never change while it runs.
 */
const compiled = new Map<string, ReturnType<Eta['compile']>>();

/**
 * Renders HTML templates (Eta). `<%= %>` escapes its value, so that a value cannot contain HTML. No
 * template uses the form without escapes for data of a request or of the database.
 */
@Injectable()
export class Views {
  readonly #eta = new Eta({ autoEscape: true, varName: 'page', useWith: false });
  readonly #site: object;
  /** The file of each template, by its name. */
  readonly #files = new Map<string, string>();

  constructor(
    @Inject(CONFIG) { relyingParty }: Pick<Config, 'relyingParty'>,
    @Inject(PAGE_SCRIPTS) scripts: readonly string[],
  ) {
    this.#site = { organizationName: relyingParty.organizationName, scripts };
  }

  /**
   * Registers every `.eta` file of a folder under its name without the ending.
   *
   * @throws Error if a template of another folder has the same name, because one would replace the
   *   other
   */
  register(folder: URL): void {
    const path = fileURLToPath(folder);
    for (const file of readdirSync(path).filter((name) => name.endsWith('.eta'))) {
      const [name, whole] = [basename(file, '.eta'), join(path, file)];
      const earlier = this.#files.get(name);
      if (earlier !== undefined && earlier !== whole) {
        throw new Error(`two templates have one name: ${earlier} and ${whole}`);
      }
      this.#files.set(name, whole);
      const template = compiled.get(whole) ?? this.#eta.compile(readFileSync(whole, 'utf8'));
      compiled.set(whole, template);
      this.#eta.loadTemplate(`@${name}`, template);
    }
  }

  /** Renders a template with its data. Every template also gets the data of the site as `site`. */
  render(name: string, data: object): string {
    return this.#eta.render(`@${name}`, { ...data, site: this.#site });
  }
}
