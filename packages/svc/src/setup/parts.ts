import type { SetupPart } from '../changes/setup-part.js';
import { awsPart } from '../aws/aws-part.js';
import { gitPart } from '../git/git-part.js';
import { kubectlPart } from '../kubectl/kubectl-part.js';
import { sshPart } from '../ssh/ssh-part.js';

/** Every tool that `svc setup` knows, in the order in which it goes through them. */
export const SETUP_PARTS: readonly SetupPart[] = [sshPart, awsPart, gitPart, kubectlPart];
