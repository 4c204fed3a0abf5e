import { readFileSync } from 'node:fs';
import type { Client } from './client.js';

/** The text of the page that says how to run the OpenID conformance suite. */
export const CONFORMANCE_PAGE = readFileSync(
  new URL('../../docs/conformance.md', import.meta.url),
  'utf8',
);

/**
 * The URL of the service (OP, OpenID provider) in the suite's configuration, and the URL of the
 * suite.
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
 * The tasks of the suite's browser after it has opened a URL that matches `match`. It does them for
 * the first `match-limit` visits.
 */
export interface BrowserEntry {
  readonly match: string;
  readonly 'match-limit'?: number;
  readonly tasks: readonly Task[];
}

/**
 * The configuration of the suite's browser. It is the first block of JSON on {@link
 * CONFORMANCE_PAGE}.
 */
export const SUITE_CONFIGURATION = JSON.parse(
  /```json\n([^]*?)```/.exec(CONFORMANCE_PAGE)?.[1] ?? '',
) as {
  readonly browser: readonly BrowserEntry[];
  readonly override: Readonly<Record<string, { readonly browser: readonly BrowserEntry[] }>>;
};

/**
 * Returns true if a pattern matches a whole URL. In the suite's patterns, `*` stands for any text.
 */
export function matches(pattern: string, url: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(url);
}

/**
 * The result of a visit: the URL of the last page, and the HTML of the page of which the suite took
 * a screenshot (`picture`). It is undefined if the suite took none.
 */
export interface Visit {
  readonly url: string;
  readonly picture: string | undefined;
}

/**
 * Does what the browser of the conformance suite would do in one test module: the configured tasks,
 * on pages of the service. It runs no scripts, because the suite's browser HtmlUnit cannot run
 * JavaScript modules. Each command works as in the suite's class `SeleniumBrowserRunner`.
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
   * Opens a URL, and does the configured tasks.
   *
   * @param asksForPicture true if the module needs a screenshot of this visit
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

  /**
   * Returns the HTML of the element that a selector of the configuration finds. Throws if there is
   * none.
   */
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

  /** Submits a form of the page, with the values that were typed into it. */
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
   * Opens a URL, and follows redirects of responses and of pages (`<meta http-equiv="refresh">`).
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
