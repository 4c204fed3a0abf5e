import { Controller, Get, Param, Query } from '@nestjs/common';
import type { z } from 'zod';
import type { Program } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { ManagedApplications } from '#domain/oauth/applications/managed-applications.service.js';
import { forPrograms } from '#domain/sessions/program-itself.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  APPLICATION_JSON,
  applicationJson,
  APPLICATIONS_JSON,
  type ApplicationJson,
} from './application-json.js';
import { managerOfProgram } from './application-manager.js';
import { APPLICATION_ID, PAGE, type ApplicationsPage } from './applications.schemas.js';

/**
 * `/api/v1/programs/applications`: the applications and clusters of the organization for a program,
 * which reads them by its API token.
 */
@Controller('api/v1/programs/applications')
@Route({
  tier: 'general',
  audience: 'api',
  errors: 'problem',
  auth: forPrograms('applications:read'),
})
export class ProgramApplicationsController {
  constructor(private readonly managedApplications: ManagedApplications) {}

  @Get()
  @Route({
    operation: 'listApplicationsForProgram',
    summary: 'Lists the applications of the organization to a program',
    answers: { 200: APPLICATIONS_JSON },
  })
  async list(
    @Caller() program: Program,
    @Query({ schema: PAGE }) { after }: ApplicationsPage,
  ): Promise<z.output<typeof APPLICATIONS_JSON>> {
    const manager = managerOfProgram(program);
    const { applications, next } = await this.managedApplications.list(manager, after, program);
    return { applications: applications.map(applicationJson), next };
  }

  @Get(':id')
  @Route({
    operation: 'getApplicationForProgram',
    summary: 'Shows an application of the organization to a program',
    answers: { 200: APPLICATION_JSON },
    refusals: ['not_found'],
  })
  async find(
    @Caller() program: Program,
    @Param({ schema: APPLICATION_ID }) { id }: { id: string },
  ): Promise<ApplicationJson> {
    return applicationJson(await this.managedApplications.find(managerOfProgram(program), id));
  }
}
