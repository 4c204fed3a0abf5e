import type { SetupPart } from '../changes/setup-part.js';
import { awsPart } from '../aws/aws-part.js';
import { dockerPart } from '../docker/docker-part.js';
import { gitPart } from '../git/git-part.js';
import { kubectlPart } from '../kubectl/kubectl-part.js';
import { sshPart } from '../ssh/ssh-part.js';

/** The parts of `svc setup`, one for each tool, in the order in which it sets them up. */
export const SETUP_PARTS: readonly SetupPart[] = [
  sshPart,
  awsPart,
  gitPart,
  kubectlPart,
  dockerPart,
];
