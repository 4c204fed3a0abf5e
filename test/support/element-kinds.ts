import type { Page } from 'playwright-core';

/**
 * Returns the kinds of elements on a page. A kind has the names, classes, roles and states of an
 * element and of its ancestors, but no texts and URLs. Elements of one kind have the same style and
 * attributes, so checking one of them is enough.
 */
export function elementKinds(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`(() => {
    const kinds = new Set();
    const says = /^(?:class|role|type|lang|scope|aria-(?:hidden|live|current|expanded|disabled|invalid))$/;
    const visit = (element, around) => {
      const attributes = [...element.attributes].map(({ name, value }) =>
        says.test(name) ? name + '=' + value : value === '' ? name : name + '=…',
      );
      const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && /\\S/.test(node.data));
      const kind = around + '/' + [element.localName, ...attributes.sort(), hasText].join(' ');
      kinds.add(kind);
      for (const child of element.children) visit(child, kind);
    };
    visit(document.documentElement, '');
    return [...kinds];
  })()`);
}
