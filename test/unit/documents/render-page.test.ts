import { describe, expect, it } from 'vitest';

interface Script {
  readonly renderPage: (
    page: string,
    text: string,
    site: { readonly pages: ReadonlySet<string>; readonly files: ReadonlySet<string> },
  ) => { readonly html: string; readonly sections: readonly { readonly text: string }[] };
}

const script = new URL('../../../scripts/documents/render-page.js', import.meta.url).href;
const { renderPage } = (await import(script)) as Script;
const site = {
  pages: new Set(['README.md', 'guides/README.md', 'guides/backup.md', 'guides/a.md']),
  files: new Set(['guides/screenshots/one.png']),
};
const html = (text: string) => renderPage('guides/a.md', `# A\n\n${text}`, site).html;

describe('a rendered document', () => {
  it('shows raw HTML and addresses with a script as text', () => {
    expect(html('<script>alert(1)</script>')).not.toContain('<script');
    expect(html('a <b onclick="x">b</b>')).not.toContain('<b');
    expect(html('[x](javascript:alert(1))')).not.toMatch(/href="javascript/);
    expect(html('`<i>` & "q"')).toContain('<code>&lt;i&gt;</code> &amp; ');
  });

  it.each([
    ['[x](backup.md)', '<a href="/docs/guides/backup">x</a>'],
    ['[x](backup.md#the-drill)', '<a href="/docs/guides/backup#the-drill">x</a>'],
    ['[x](README.md)', '<a href="/docs/guides">x</a>'],
    ['[x](..)', '<a href="/docs">x</a>'],
    ['[x](#a)', '<a href="#a">x</a>'],
    ['[x](https://example.com)', '<a href="https://example.com">x</a>'],
    ['[x](../../CHANGELOG.md)', 'x (<code>CHANGELOG.md</code>)'],
    ['![x](screenshots/one.png)', '<img src="/docs/files/one.png" alt="x" loading="lazy">'],
    ['see https://login.example.com/x', 'see https://login.example.com/x</p>'],
  ])('leads with %s to %s', (markdown, expected) => {
    expect(html(markdown)).toContain(expected);
  });

  it('names equal headings apart, the cells of a table by their columns, and the language of code', () => {
    expect(html('## Do it\n\n## Do it')).toMatch(/id="do-it".*\n?.*id="do-it-1"/);
    const table = html('| Key | Value |\n| - | - |\n| `a` | b |');
    expect(table).toContain('<th scope="row"><code>a</code></th><td data-label="Value">b</td>');
    expect(html('```sh test=x:y\nls\n```')).toContain(
      '<pre tabindex="0"><code class="language-sh">ls</code></pre>',
    );
  });

  it('divides a long list into parts for the search', () => {
    const items = Array.from({ length: 40 }, (_, i) => `- \`SVC_${i}\`: ${'word '.repeat(20)}`);
    const { sections } = renderPage('guides/a.md', `# A\n\n${items.join('\n')}`, site);
    expect(sections.length).toBeGreaterThan(4);
    expect(sections.map(({ text }) => text).join('')).toContain('SVC_39');
  });
});
