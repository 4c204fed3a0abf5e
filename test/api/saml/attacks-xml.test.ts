import { createServer } from 'node:http';
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import {
  attackSuite,
  expectAccepted,
  expectAttackRefused,
  expectRefused,
  formOf,
  honestly,
  MALLORY,
  VICTIM,
  type Forge,
} from '../../support/saml/attack-suite.js';
import type { Asked } from '../../support/saml/forger.js';
import { beginSamlSignIn, comeBack, encoded, postToAcs } from '../../support/saml/saml-browser.js';

/** The greatest size in bytes of the body that `/saml/acs` reads. */
const BODY_LIMIT = 64 * 1024;

/** Changes the XML of a valid response before it is encoded. */
const rewritten =
  (change: (xml: string) => string): Forge =>
  (asked, provider) =>
    change(provider.respond(asked, { email: MALLORY }));
/** Writes the XML of a valid response as other bytes than UTF-8 text. */
const packed =
  (pack: (xml: string) => Buffer): Forge =>
  (asked, provider) =>
    pack(provider.respond(asked, { email: MALLORY }));
/** Changes the base64 text of a valid response. */
const recoded =
  (change: (base64: string) => string): Forge =>
  (asked, provider) => ({ field: change(encoded(provider.respond(asked, { email: MALLORY }))) });

/**
 * Returns the milliseconds of CPU time that this process, in which the service runs, has used since
 * an earlier reading. Other programs of a busy machine do not change them.
 */
function cpuTimeSince(earlier: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(earlier);
  return (user + system) / 1000;
}

/** Returns the size of the form in bytes, as a browser encodes it. */
function formSize(xml: string, relayState: string): number {
  return new URLSearchParams({
    SAMLResponse: encoded(xml),
    RelayState: relayState,
  }).toString().length;
}

/** Returns the XML with the greatest depth whose form is not larger than {@link BODY_LIMIT}. */
function deepest(write: (depth: number) => string, relayState: string): string {
  let [low, high] = [1, BODY_LIMIT];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (formSize(write(middle), relayState) <= BODY_LIMIT) low = middle;
    else high = middle;
  }
  return write(low);
}

describe('the XML of a SAML response', () => {
  const suite = attackSuite();

  it('is refused with a DTD', async () => {
    await expectAttackRefused(suite, {
      forged: rewritten((xml) => `<!DOCTYPE samlp:Response>${xml}`),
      reason: /\(DTD\)/,
    });
  });

  it('is refused with an internal entity', async () => {
    await expectAttackRefused(suite, {
      forged: rewritten(
        (xml) =>
          `<!DOCTYPE r [<!ENTITY who "${MALLORY}">]>` +
          xml.replace(`>${MALLORY}</saml:NameID>`, '>&who;</saml:NameID>'),
      ),
      reason: /uses an entity/,
    });
  });

  it('is refused with a default attribute that a DTD declares', async () => {
    await expectAttackRefused(suite, {
      forged: rewritten(
        (xml) => `<!DOCTYPE r [<!ATTLIST saml:NameID SPNameQualifier CDATA "x">]>${xml}`,
      ),
      reason: /\(DTD\)/,
    });
  });

  it('is refused with external entities, none of which is fetched', async () => {
    let fetched = 0;
    const server = createServer((_request, response) => {
      fetched += 1;
      response.end(VICTIM);
    });
    onTestFinished(() => stopServer(server));
    const url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    expect(await (await fetch(url)).text()).toBe(VICTIM);
    for (const dtd of [
      `<!DOCTYPE r SYSTEM "${url}/dtd">`,
      `<!DOCTYPE r PUBLIC "-//X//Y" "${url}/dtd">`,
      `<!DOCTYPE r [<!ENTITY who SYSTEM "${url}/entity">]>`,
      `<!DOCTYPE r [<!ENTITY % all SYSTEM "${url}/parameter"> %all;]>`,
      `<!DOCTYPE r [<!ENTITY who SYSTEM "file:///etc/passwd">]>`,
    ]) {
      await expectAttackRefused(suite, {
        forged: rewritten(
          (xml) => dtd + xml.replace(`>${MALLORY}</saml:NameID>`, '>&who;</saml:NameID>'),
        ),
        reason: /\(DTD\)|uses an entity/,
      });
    }
    await expectAttackRefused(suite, {
      forged: rewritten((xml) => `<?xml-stylesheet href="${url}/style.xsl"?>${xml}`),
      reason: /processing instruction/,
    });
    expect(fetched).toBe(1);
  });

  it('is refused with entities that expand to gigabytes, without delay', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `e${index}`);
    const entities = names.map((entity, index) => {
      const value = index === 0 ? 'x'.repeat(100) : `&${names[index - 1]};`.repeat(10);
      return `<!ENTITY ${entity} "${value}">`;
    });
    const started = process.cpuUsage();
    await expectAttackRefused(suite, {
      forged: rewritten(
        (xml) =>
          `<!DOCTYPE r [${entities.join('')}]>` +
          xml.replace(`>${MALLORY}</saml:NameID>`, '>&e29;</saml:NameID>'),
      ),
      reason: /uses an entity/,
    });
    expect(cpuTimeSince(started)).toBeLessThan(2000);
  });

  it('is refused with an entity that no DTD declares', async () => {
    await expectAttackRefused(suite, {
      forged: rewritten((xml) => xml.replace(`>${MALLORY}</saml:NameID>`, '>&nbsp;</saml:NameID>')),
      reason: /uses an entity/,
    });
  });

  it('of 1 MB of nesting is refused by its size', async () => {
    const client = suite.app.client();
    const { relayState } = await beginSamlSignIn(client, 'corp');
    const samlResponse = encoded('<a>'.repeat(150_000) + '</a>'.repeat(150_000));
    expect(samlResponse.length).toBeGreaterThan(1024 * 1024);
    const started = process.cpuUsage();
    expect((await postToAcs(client, { samlResponse, relayState })).status).toBe(413);
    expect(cpuTimeSince(started)).toBeLessThan(1000);
    expect((await suite.app.client().get('/health')).status).toBe(200);
  });

  it.each([
    ['elements', (depth: number) => '<a>'.repeat(depth) + '</a>'.repeat(depth)],
    ['elements without an end', (depth: number) => '<a>'.repeat(depth)],
    [
      'elements that each declare a namespace',
      (depth: number) => '<a xmlns:b="c">'.repeat(depth) + '</a>'.repeat(depth),
    ],
    ['comments', (depth: number) => `<a>${'<!---->'.repeat(depth)}</a>`],
    ['attributes', (depth: number) => `<a ${attributes('b', depth)}/>`],
    ['namespaces', (depth: number) => `<a ${attributes('xmlns:b', depth)}/>`],
  ])('of the most %s that fit into 64 KiB is refused without delay', async (_, write) => {
    // Three places: instead of the whole response, before the signed assertion, and inside it.
    for (const place of [
      (xml: string) => xml,
      (xml: string, right: string) => right.replace('<saml:Assertion', `${xml}<saml:Assertion`),
      (xml: string, _right: string, asked: Asked) =>
        suite.corp.respond(asked, { email: MALLORY, assertion: { extra: xml } }),
    ]) {
      const client = suite.app.client();
      const asked = await beginSamlSignIn(client, 'corp');
      const right = suite.corp.respond(asked, { email: MALLORY });
      const forged = deepest((depth) => place(write(depth), right, asked), asked.relayState);
      const started = process.cpuUsage();
      await expectRefused(
        suite,
        client,
        () => comeBack(client, formOf(asked, forged)),
        /nested|comment|well-formed/,
      );
      expect(cpuTimeSince(started)).toBeLessThan(1500);
    }
    await expectAccepted(suite, honestly());
  });

  it.each([
    ['UTF-16', packed((xml) => Buffer.from(`\uFEFF${xml}`, 'utf16le')), /not UTF-8/],
    [
      'UTF-16 with a declaration',
      packed((xml) =>
        Buffer.from(`\uFEFF<?xml version="1.0" encoding="UTF-16"?>${xml}`, 'utf16le'),
      ),
      /not UTF-8/,
    ],
    [
      'UTF-7 by its declaration',
      packed((xml) => Buffer.from(`<?xml version="1.0" encoding="UTF-7"?>${xml}`)),
      /processing instruction|declar/,
    ],
    [
      'bytes that are not UTF-8',
      packed((xml) =>
        Buffer.from(
          xml.replace(`>${MALLORY}</saml:NameID>`, `>\xFF${MALLORY}</saml:NameID>`),
          'latin1',
        ),
      ),
      /not UTF-8/,
    ],
    ['a deflated body', packed((xml) => deflateRawSync(xml)), /not UTF-8/],
    ['a zlib body', packed((xml) => deflateSync(xml)), /not UTF-8/],
    ['a gzip body', packed((xml) => gzipSync(xml)), /not UTF-8/],
    [
      'a NUL in the XML',
      rewritten((xml) => xml.replace(MALLORY, `${MALLORY}\0`)),
      /characters that XML does not allow/,
    ],
    [
      'a control character in the XML',
      rewritten((xml) => xml.replace(MALLORY, `\u0008${MALLORY}`)),
      /characters that XML does not allow/,
    ],
    [
      'a reference to NUL',
      rewritten((xml) => xml.replace(MALLORY, `${MALLORY}&#0;`)),
      /changed after it was signed/,
    ],
    ['text behind the root', rewritten((xml) => `${xml}trailing`), /text outside its root/],
    ['a second root', rewritten((xml) => `${xml}<a/>`), /not well-formed/],
    ['a missing end', rewritten((xml) => xml.slice(0, -3)), /not well-formed/],
    [
      'another root',
      rewritten((xml) => xml.replaceAll('samlp:Response', 'samlp:ArtifactResponse')),
      /no SAML 2.0 response/,
    ],
    [
      'a root of another namespace',
      rewritten((xml) => xml.replace('urn:oasis:names:tc:SAML:2.0:protocol', 'urn:other')),
      /no SAML 2.0 response/,
    ],
    [
      'an assertion alone',
      rewritten((xml) => /<saml:Assertion.*<\/saml:Assertion>/.exec(xml)?.[0] ?? ''),
      /no SAML 2.0 response/,
    ],
    [
      'the version 1.1',
      rewritten((xml) =>
        xml.replace('Version="2.0"><saml:Issuer xmlns', 'Version="1.1"><saml:Issuer xmlns'),
      ),
      /no SAML 2.0 response/,
    ],
    ['an attribute twice', rewritten((xml) => xml.replace(' ID="', ' ID="_x" ID="')), /malformed/],
  ])('is refused as %s', async (_, forged, reason) => {
    await expectAttackRefused(suite, { forged, reason });
  });

  it.each([
    ['a NUL', recoded((text) => `${text.slice(0, 100)}\0${text.slice(100)}`)],
    ['control characters', recoded((text) => `\u0001\u0002${text}`)],
    [
      'characters outside the alphabet',
      recoded((text) => `${text.slice(0, 100)}!*${text.slice(100)}`),
    ],
    ['the URL-safe alphabet', recoded((text) => `${text.slice(0, 100)}-_${text.slice(100)}`)],
    ['padding in the middle', recoded((text) => `${text.slice(0, 100)}==${text.slice(100)}`)],
    ['a second document behind the padding', recoded((text) => `${text}====${text}`)],
    ['nothing', recoded(() => '')],
    ['no base64 at all', recoded(() => '<samlp:Response/>')],
  ])('is refused when its base64 has %s', async (_, forged) => {
    await expectAttackRefused(suite, {
      forged,
      reason: /Its response is malformed|not text|SAMLResponse/,
    });
  });

  it('is accepted when its base64 has lines of 76 characters, as some providers write it', async () => {
    await expectAccepted(
      suite,
      recoded((text) => text.replace(/.{76}/g, '$&\r\n')),
    );
  });

  it('is accepted with a declaration of UTF-8 and an end of line', async () => {
    await expectAccepted(
      suite,
      rewritten((xml) => `<?xml version="1.0" encoding="UTF-8"?>\n${xml}\n`),
    );
  });

  it('is refused when the form names two responses, or none', async () => {
    await expectAccepted(suite, honestly());
    for (const change of [
      (form: URLSearchParams) => form.append('SAMLResponse', form.get('SAMLResponse') ?? ''),
      (form: URLSearchParams) => form.delete('SAMLResponse'),
    ]) {
      const client = suite.app.client();
      const asked = await beginSamlSignIn(client, 'corp');
      const form = new URLSearchParams({
        SAMLResponse: encoded(suite.corp.respond(asked)),
        RelayState: asked.relayState,
      });
      change(form);
      await expectRefused(
        suite,
        client,
        async () => {
          const headers = { 'content-type': 'application/x-www-form-urlencoded' };
          const answer = await client.post('/saml/acs', form.toString(), { headers });
          const location = answer.headers.get('location');
          return location === null
            ? { ...answer, url: new URL(client.baseUrl) }
            : client.follow(location);
        },
        /SAMLResponse|occurs twice/,
      );
    }
  });
});

/** Returns `count` attributes of XML with different names. */
function attributes(prefix: string, count: number): string {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}="x"`).join(' ');
}
