import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { trustAnchorFromPem } from '@svc/webauthn-policy';
import { issueAttestationLeaf } from '@svc/stand-ins/attestation-authority';
import { startTestApp, type TestApp } from './app.js';
import { PROVIDER_NEEDS, SecurityKeyProvider } from './security-key-provider.js';
import { AAGUID, aaguidBytes } from './soft-key.js';
import { SecurityKeyVendor } from './ssh-security-key.js';
import { SSHD_PROGRAMS, startSshd, type Sshd } from './sshd.js';

/** The programs that {@link startHardwareSsh} needs. */
export const HARDWARE_SSH_NEEDS = [...SSHD_PROGRAMS, ...PROVIDER_NEEDS] as const;

/**
 * An application that certifies only SSH keys of attested security keys, an `sshd` that trusts it,
 * and a software security key for OpenSSH.
 */
export interface HardwareSsh {
  readonly app: TestApp;
  readonly sshd: Sshd;
  readonly provider: SecurityKeyProvider;
  /** A folder that only this user can read. `close` deletes it. */
  readonly folder: string;
  close(): Promise<void>;
}

/**
 * Starts the application and `sshd`. Certificates with the given principal may log in to the
 * account of the tests.
 */
export async function startHardwareSsh(principal: string): Promise<HardwareSsh> {
  const vendor = new SecurityKeyVendor(new Date());
  const folder = mkdtempSync(join(tmpdir(), 'svc-sk-'));
  const leaf = issueAttestationLeaf(aaguidBytes(AAGUID), vendor.now, vendor.root);
  const provider = SecurityKeyProvider.build(folder, leaf);
  const app = await startTestApp({
    trustAnchors: [trustAnchorFromPem(vendor.root.pem)],
    environment: { SVC_SSH_REQUIRE_SK: 'true' },
  });
  const authority = await app.client().get('/v1/credentials/ssh/ca');
  const sshd = await startSshd({ authorities: [authority.text.trim()], principals: [principal] });
  return {
    app,
    sshd,
    provider,
    folder,
    async close() {
      await sshd.stop();
      await app.close();
      rmSync(folder, { recursive: true });
    },
  };
}
