import { DOMParser } from '@xmldom/xmldom';
import { describe, expect, it } from 'vitest';
import { element, joined, markup, XML_DECLARATION, type Markup } from '@svc/markup';

/** Texts that would end an element, an attribute, a comment or a document. */
const HOSTILE = [
  '</a><b>',
  '"/><b x="',
  "'/><b x='",
  '<!--',
  '--><b/>',
  ']]><b/>',
  '<![CDATA[<b/>]]>',
  '<?xml version="1.0"?>',
  '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;',
  '&lt;b&gt;',
  '&#60;b&#62;',
  'a\u00a0\u{1f600}',
];

/**
 * Reads a document by a parser of XML.
 *
 * @throws Error for each warning or error of the parser
 */
function parsed(document: Markup) {
  const refuse = (message: string) => {
    throw new Error(message);
  };
  const read = new DOMParser({
    errorHandler: { warning: refuse, error: refuse, fatalError: refuse },
  });
  return read.parseFromString(document.text, 'text/xml').documentElement;
}

describe('markup', () => {
  it.each(HOSTILE)('keeps %j a text, in an element and in an attribute', (text) => {
    const root = parsed(markup`${XML_DECLARATION}<a x="${text}" y='${text}'>${text}</a>`);
    expect(root?.textContent).toBe(text);
    expect([root?.getAttribute('x'), root?.getAttribute('y')]).toEqual([text, text]);
    const made = parsed(element('a', text, { x: text }));
    expect([made?.textContent, made?.getAttribute('x')]).toEqual([text, text]);
  });

  it('writes no character that XML forbids', () => {
    expect(markup`${'a\0b\u001fc\ufffed\ud800e'}`.text).toBe('a\ufffdb\ufffdc\ufffdd\ufffde');
  });

  it('leaves markup as it is, and joins lists', () => {
    const items = ['<', '>'].map((text) => element('i', text));
    expect(markup`<p>${items}${true}${3}</p>`.text).toBe('<p><i>&lt;</i><i>&gt;</i>true3</p>');
    expect(joined(items, '\n').text).toBe('<i>&lt;</i>\n<i>&gt;</i>');
  });

  it.each(['', 'a b', 'a>', '1a', 'a/', ':a', 'a:b:c', 'ä'])('refuses the name %j', (name) => {
    expect(() => element(name, '')).toThrow('not a name of XML');
    expect(() => element('a', '', { [name]: '' })).toThrow('not a name of XML');
  });
});
