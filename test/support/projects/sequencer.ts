import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { PROJECTS, type ProjectName } from './projects.js';

/**
 * Runs the projects in the order of {@link PROJECTS}. The files of each project run by their
 * duration in earlier runs, the longest first.
 */
export class ProjectSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of vitest, which is no array's
    const sorted = await super.sort(files);
    const place = ({ project }: TestSpecification) => PROJECTS.indexOf(project.name as ProjectName);
    return sorted.toSorted((a, b) => place(a) - place(b));
  }
}
