import { quoted, type InstalledFile } from './install-script.js';

/**
 * Returns the script `/install.ps1` for Windows PowerShell 5.1 and PowerShell 7. All of it is in
 * functions, which only the last line calls, so that a script whose download was cut off does
 * nothing.
 */
export function windowsScript(server: string, { path, sha256 }: InstalledFile): string {
  return `# Installs the svc command of ${server} for the user who runs this script, without admin rights.
# It writes %LOCALAPPDATA%\\Programs\\svc, and adds that folder to the PATH of the user.
# Run it again to update. To undo it, remove the folder.
#
# The server vouches for the SHA-256 of the file. To demand the signature of the maintainers too, put
# their key into %USERPROFILE%\\.config\\svc\\allowed_signers, or name such a file by SVC_ALLOWED_SIGNERS.

$SvcServer = ${quoted(server)}
$SvcPath = ${quoted(path)}
$SvcSha256 = ${quoted(sha256)}
${SCRIPT}`;
}

const SCRIPT = `
function Stop-SvcInstall([string] $What, [string] $WhatToDo) {
  throw "svc: $What $WhatToDo"
}

function Get-SvcFile([string] $Path, [string] $File) {
  try {
    Invoke-WebRequest -UseBasicParsing -Uri "$SvcServer$Path" -OutFile $File -MaximumRedirection 0
  } catch {
    Stop-SvcInstall "$SvcServer$Path cannot be downloaded." 'Check the network, then run this again.'
  }
}

# Compares the file with the signed list of the release, if the user has the key of the maintainers.
function Test-SvcSignature([string] $New) {
  $signers = $env:SVC_ALLOWED_SIGNERS
  if (-not $signers) {
    $signers = Join-Path $env:USERPROFILE '.config\\svc\\allowed_signers'
    if (-not (Test-Path -LiteralPath $signers)) { return }
  }
  $keygen = Get-Command ssh-keygen.exe -ErrorAction SilentlyContinue
  if (-not $keygen) {
    Stop-SvcInstall "ssh-keygen is not installed, and $signers demands a signature." 'Add the OpenSSH client of Windows.'
  }
  Get-SvcFile '/install/files/SHA256SUMS' "$New.list"
  Get-SvcFile '/install/files/SHA256SUMS.sig' "$New.sig"
  $arguments = "-Y verify -f \`"$signers\`" -I release@svc-server -n file -s \`"$New.sig\`""
  $verified = Start-Process -FilePath $keygen.Source -ArgumentList $arguments -RedirectStandardInput "$New.list" -RedirectStandardOutput "$New.said" -NoNewWindow -Wait -PassThru
  if ($verified.ExitCode -ne 0) {
    Stop-SvcInstall "the release has no signature by a key of $signers. Nothing is installed." 'Do not install it; tell an admin.'
  }
  $line = $SvcSha256 + '  ' + $SvcPath.Substring($SvcPath.LastIndexOf('/') + 1)
  if (@(Get-Content -LiteralPath "$New.list") -cnotcontains $line) {
    Stop-SvcInstall 'the signed list has another SHA-256. Nothing is installed.' 'Do not install it; tell an admin.'
  }
}

# Adds the folder to the PATH of the user, and keeps its other entries as they are written.
function Add-SvcToPath([string] $Folder) {
  $key = [Microsoft.Win32.Registry]::CurrentUser.OpenSubKey('Environment', $true)
  try {
    $path = [string] $key.GetValue('Path', '', [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
    if (($path -split ';') -notcontains $Folder) {
      $joined = (@($path.TrimEnd(';'), $Folder) | Where-Object { $_ }) -join ';'
      $key.SetValue('Path', $joined, [Microsoft.Win32.RegistryValueKind]::ExpandString)
      # Any change of a variable tells the programs that run, such as the Explorer.
      [Environment]::SetEnvironmentVariable('SVC_INSTALL', $null, 'User')
    }
  } finally {
    $key.Close()
  }
  if (($env:Path -split ';') -notcontains $Folder) { $env:Path = "$env:Path;$Folder" }
}

# Gives the new file the name of the command. Windows renames a program that runs, but does not replace it.
function Move-SvcIntoPlace([string] $New, [string] $Program) {
  $previous = $Program -replace '\\.exe$', '.previous.exe'
  if (Test-Path -LiteralPath $Program) { Move-Item -LiteralPath $Program -Destination $previous -Force }
  try {
    Move-Item -LiteralPath $New -Destination $Program
  } catch {
    if (Test-Path -LiteralPath $previous) { Move-Item -LiteralPath $previous -Destination $Program }
    throw
  }
}

function Install-Svc {
  $ErrorActionPreference = 'Stop'
  $ProgressPreference = 'SilentlyContinue'
  if (-not [Environment]::Is64BitOperatingSystem) {
    Stop-SvcInstall 'this Windows has 32 bits, and svc needs 64.' 'Use another machine.'
  }
  # Windows PowerShell 5.1 offers older versions of TLS alone on some systems.
  [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
  $folder = Join-Path $env:LOCALAPPDATA 'Programs\\svc'
  $program = Join-Path $folder 'svc.exe'
  $new = Join-Path $folder ('.svc-' + [Guid]::NewGuid().ToString() + '.exe')
  New-Item -ItemType Directory -Force -Path $folder | Out-Null
  try {
    Get-SvcFile $SvcPath $new
    if ((Get-FileHash -LiteralPath $new -Algorithm SHA256).Hash -ne $SvcSha256) {
      Stop-SvcInstall 'the download does not have the expected SHA-256. Nothing is installed.' 'Run this again; if that does not help, tell an admin.'
    }
    Test-SvcSignature $new
    & $new --version | Out-Null
    if ($LASTEXITCODE -ne 0) { Stop-SvcInstall 'the new file does not run here. Nothing is installed.' 'Tell an admin.' }
    Move-SvcIntoPlace $new $program
  } finally {
    foreach ($end in '', '.list', '.sig', '.said') { Remove-Item -LiteralPath "$new$end" -Force -ErrorAction SilentlyContinue }
  }
  Add-SvcToPath $folder
  & $program use $SvcServer | Out-Null
  if ($LASTEXITCODE -ne 0) { Stop-SvcInstall "svc is installed, and cannot reach $SvcServer." "Run: svc use $SvcServer" }
  $completions = Join-Path $folder 'svc-completions.ps1'
  & $program completions powershell | Set-Content -LiteralPath $completions -Encoding ASCII
  Write-Host "svc is installed in $program."
  Write-Host "For completions, add this line to the file that \`$PROFILE names:  . '$completions'"
  Write-Host 'Next: svc login'
}

Install-Svc
`;
