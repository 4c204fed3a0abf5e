import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Views } from '../../../src/platform/http/views/views.service.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

describe('the templates of the service', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    for (const part of ['one', 'other']) {
      await mkdir(join(folder, part));
      await writeFile(join(folder, part, 'device.eta'), `${part}: <%= page.text %>`);
    }
  });
  afterAll(() => removeDirectory(folder));

  it('never replace one another: two of one name in two folders do not start', () => {
    const relyingParty = { id: 'localhost', name: 'svc', organizationName: 'svc' };
    const views = new Views({ relyingParty }, []);
    const register = (part: string) => views.register(pathToFileURL(join(folder, part)));
    register('one');
    register('one'); // two controllers share a folder
    expect(() => register('other')).toThrow('two templates have one name');
    expect(views.render('device', { text: '<b>' })).toBe('one: &lt;b&gt;');
  });
});
