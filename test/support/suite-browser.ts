import { readFileSync } from 'node:fs';
import type { Client } from './client.js';

/** The page of the documents that describes how the conformance suite of OpenID is run. */
export const CONFORMANCE_PAGE = readFileSync(
  new URL('../../docs/conformance.md', import.meta.url),
  'utf8',
);

/**
 * The origins in the suite's configuration: of the service (OP, OpenID provider), and of the suite
 * itself.
 */
export const OP = 'https://op.example.com';
export const SUITE = 'https://suite.example.com';

type Command = readonly (string | number)[];
interface Task {
  readonly task: string;
  readonly match: string;
  readonly optional?: boolean;
  readonly commands: readonly Command[];
}
/**
 * The tasks that the suite's browser carries out after it opened an address that matches `match`,
 * at most `match-limit` times.
 */
export interface BrowserEntry {
  readonly match: string;
  readonly 'match-limit'?: number;
  readonly tasks: readonly Task[];
}

/**
 * The configuration of the suite's browser, which is a block of JSON on the page {@link
 * CONFORMANCE_PAGE}.
 */
export const SUITE_CONFIGURATION = JSON.parse(
  /```json\n([^]*?)```/.exec(CONFORMANCE_PAGE)?.[1] ?? '',
) as {
  readonly browser: readonly BrowserEntry[];
  readonly override: Readonly<Record<string, { readonly browser: readonly BrowserEntry[] }>>;
};

/** Matches a whole address by the suite's kind of pattern, in which `*` stands for any text. */
export function matches(pattern: string, url: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(url);
}

/**
 * The end of a visit: the address of the last page, and the HTML of the page of which the suite
 * took a picture. `picture` is undefined if it took none.
 */
export interface Visit {
  readonly url: string;
  readonly picture: string | undefined;
}

/**
 * A stand-in for the browser of the conformance suite in one test module. It carries out the
 * configured tasks on the pages of a service. It runs no scripts, because the suite's browser
 * HtmlUnit does not know JavaScript modules. Each command does what the suite's class
 * `SeleniumBrowserRunner` does.
 */
export class SuiteBrowser {
  readonly #visits = new Map<BrowserEntry, number>();
  #url = '';
  #text = '';
  #typed = new Map<string, string>();
  #picture: string | undefined;

  constructor(
    private readonly client: Client,
    private readonly token: string,
    module = '',
    private readonly entries = SUITE_CONFIGURATION.override[module]?.browser ??
      SUITE_CONFIGURATION.browser,
  ) {}

  /**
   * Visits an address and carries out the tasks.
   *
   * @param asksForPicture true if the module asks for a picture of this visit
   */
  async visit(address: string, asksForPicture = false): Promise<Visit> {
    this.#picture = undefined;
    await this.#open('GET', address);
    const url = address.replace(this.client.baseUrl, OP);
    const entry = this.entries.find((one) => matches(one.match, url) && this.#takes(one));
    for (const { match, optional, commands } of entry?.tasks ?? []) {
      if (matches(match, this.#url)) {
        for (const command of commands) await this.#run(command, asksForPicture);
      } else if (optional !== true) throw new Error(`unexpected address ${this.#url}`);
    }
    return { url: this.#url, picture: this.#picture };
  }

  #takes(entry: BrowserEntry): boolean {
    const seen = this.#visits.get(entry) ?? 0;
    if (seen >= (entry['match-limit'] ?? Infinity)) return false;
    this.#visits.set(entry, seen + 1);
    return true;
  }

  async #run([command, by, target, value, action, more]: Command, asksForPicture: boolean) {
    const [selector, text] = [`${by} ${target}`, String(value)];
    if (command === 'text') {
      this.#find(selector);
      this.#typed.set(String(target), text.replace('the test token', this.token));
    } else if (command === 'click') {
      if (value !== 'optional' || this.#has(selector)) await this.#submit(this.#find(selector));
    } else if (by === 'match') {
      if (!new RegExp(String(target)).test(this.#url)) throw new Error(`still at ${this.#url}`);
    } else {
      const found = this.#find(selector).replaceAll(/<[^>]*>/g, ' ');
      const pattern = action === undefined ? undefined : new RegExp(String(action));
      if (pattern?.test(found) === false) throw new Error(`waited in vain for ${String(action)}`);
      // the first picture of a visit is kept
      if (more !== undefined && asksForPicture) this.#picture ??= this.#text;
    }
  }

  /** Returns the HTML that a selector of the configuration finds. */
  #find(selector: string): string {
    const found = this.#has(selector);
    if (!found) throw new Error(`${this.#url} has no ${selector}`);
    return found;
  }

  #has(selector: string): string | undefined {
    const [, by, target = ''] = /^(\w+) (.+)$/.exec(selector) ?? [];
    if (by === 'id') return new RegExp(`<[^>]* id="${target}"[^>]*>`).exec(this.#text)?.[0];
    if (target === '//*') return this.#text;
    if (target === '//main') return /<main[^]*<\/main>/.exec(this.#text)?.[0];
    const [, name = '', action] = /^\/\/form\[@([\w-]+)(?:='([^']+)')?\]/.exec(target) ?? [];
    const attribute = action === undefined ? name : `${name}="${action}"`;
    return new RegExp(`<form[^>]* ${attribute}[^]*?</form>`).exec(this.#text)?.[0];
  }

  /** Submits a form of the page, as a click on its button does. */
  async #submit(form: string): Promise<void> {
    const fields = new URLSearchParams();
    for (const [input] of form.matchAll(/<input[^>]*>/g)) {
      const of = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(input)?.[1];
      if (of('type') === 'checkbox') continue;
      fields.set(of('name') ?? '', this.#typed.get(of('id') ?? '') ?? of('value') ?? '');
    }
    const action = / action="([^"]+)"/.exec(form)?.[1] ?? '';
    await this.#open('POST', new URL(action, this.client.baseUrl).href, fields.toString());
  }

  /**
   * Opens an address, and follows redirects and the addresses to which pages lead by themselves.
   */
  async #open(method: string, address: string, body?: string): Promise<void> {
    let [how, next] = [method, address];
    for (let hops = 0; hops < 12; hops += 1) {
      this.#url = next.replace(this.client.baseUrl, OP);
      if (next.startsWith(SUITE)) {
        this.#text = '<main id="submission_complete"></main>';
        return;
      }
      const type = 'application/x-www-form-urlencoded';
      const headers = { accept: 'text/html', ...(how === 'POST' && { 'content-type': type }) };
      const answer = await this.client.send(how, next, {
        headers,
        ...(how === 'POST' && { body }),
      });
      this.#text = answer.text;
      const refresh = /http-equiv="refresh" content="0; ?url=([^"]+)"/.exec(answer.text)?.[1];
      const location = answer.headers.get('location') ?? refresh?.replaceAll('&amp;', '&');
      if (location === undefined) return;
      [how, next] = ['GET', new URL(location, next).href];
    }
    throw new Error('too many redirects');
  }
}
