/** The name of the command at winget: its publisher, and itself. */
const WINGET_NAME = 'SvcServer.Svc';
const WINGET_SCHEMA = '1.6.0';
const LICENSE = 'Apache-2.0';

/**
 * Returns the manifests by which Homebrew, Scoop and winget install the executables.
 *
 * @param {{ version: string, url: string, files: Record<string, { name: string, sha256: string }>,
 *   summary: string }} options the URL of the folder in which the files will be, without a slash at
 *   its end, and the file of each platform with its hash
 * @returns {Record<string, string>} the texts by the names of their files
 */
export function manifestsOf({ version, url, files, summary }) {
  const about = { version, summary, homepage: new URL(url).origin };
  const of = (platform) => ({
    url: `${url}/${files[platform].name}`,
    sha256: files[platform].sha256,
  });
  return {
    'svc.rb': formulaOf(about, of),
    'svc.json': scoopOf(about, of),
    ...wingetOf(about, of),
  };
}

/**
 * Returns the formula for Homebrew. Homebrew unpacks a gzip file by itself, so that the formula
 * finds the program.
 */
function formulaOf({ version, summary, homepage }, of) {
  const choice = (system, name) =>
    [
      `  on_${system} do`,
      ...['arm', 'intel'].flatMap((kind) => {
        const { url, sha256 } = of(`${name}-${kind === 'arm' ? 'arm64' : 'x64'}`);
        return [
          `    on_${kind} do`,
          `      url ${quoted(url)}`,
          `      sha256 ${quoted(sha256)}`,
          '    end',
        ];
      }),
      '  end',
    ].join('\n');
  return `class Svc < Formula
  desc ${quoted(summary)}
  homepage ${quoted(homepage)}
  version ${quoted(version)}
  license ${quoted(LICENSE)}

${choice('macos', 'darwin')}

${choice('linux', 'linux')}

  def install
    bin.install Dir["svc-*"].first => "svc"
    chmod 0755, bin/"svc"
    generate_completions_from_executable(bin/"svc", "completions", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/svc --version")
  end
end
`;
}

function scoopOf({ version, summary, homepage }, of) {
  const { url, sha256 } = of('win-x64');
  const manifest = {
    version,
    description: summary,
    homepage,
    license: LICENSE,
    architecture: { '64bit': { url: `${url}#/svc.exe`, hash: sha256 } },
    bin: 'svc.exe',
  };
  return `${JSON.stringify(manifest, null, 4)}\n`;
}

/**
 * Returns the three files of a package at winget, by their names: its version, its installer and
 * its description.
 */
function wingetOf({ version, summary, homepage }, of) {
  const { url, sha256 } = of('win-x64');
  const fileOf = (kind, lines) =>
    `${[
      `# yaml-language-server: $schema=https://aka.ms/winget-manifest.${kind}.${WINGET_SCHEMA}.schema.json`,
      `PackageIdentifier: ${WINGET_NAME}`,
      `PackageVersion: ${quoted(version)}`,
      ...lines,
      `ManifestType: ${kind}`,
      `ManifestVersion: ${WINGET_SCHEMA}`,
    ].join('\n')}\n`;
  return {
    [`${WINGET_NAME}.yaml`]: fileOf('version', ['DefaultLocale: en-US']),
    [`${WINGET_NAME}.installer.yaml`]: fileOf('installer', [
      'InstallerType: portable',
      'Commands:',
      '- svc',
      'Installers:',
      '- Architecture: x64',
      `  InstallerUrl: ${quoted(url)}`,
      `  InstallerSha256: ${sha256.toUpperCase()}`,
    ]),
    [`${WINGET_NAME}.locale.en-US.yaml`]: fileOf('defaultLocale', [
      'PackageLocale: en-US',
      'Publisher: svc-server',
      'PackageName: svc',
      `PackageUrl: ${quoted(homepage)}`,
      `License: ${LICENSE}`,
      `ShortDescription: ${quoted(summary)}`,
    ]),
  };
}

/** Quotes a text for Ruby and YAML. URLs, versions and hashes have nothing to escape. */
function quoted(text) {
  return `"${text}"`;
}
