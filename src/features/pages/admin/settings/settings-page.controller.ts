import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { IssuerAdmin } from '#domain/admin/organization/issuer-admin.service.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';
import { publishedKeys } from '#domain/organizations/issuers/issuer-key-state.js';
import { issuerOfLabel } from '#domain/organizations/issuers/issuer-label.js';
import type { OrganizationIssuer } from '#domain/organizations/issuers/organization-issuers.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Caller } from '#platform/http/access/caller.js';
import { jsonTag } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';

/**
 * Serves `/admin/settings`: the name and the issuer of an organization, who becomes a member, and
 * whether members may sign devices in with a code.
 */
@Controller('admin/settings')
@Route(PAGE_ROUTE)
export class SettingsPageController {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly organizationAdmin: OrganizationAdmin,
    private readonly issuerAdmin: IssuerAdmin,
    private readonly views: Views,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  /**
   * Shows the settings to an admin.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the settings of the organization' })
  async show(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-settings', async (admin) => {
      const [settings, issuer] = await Promise.all([
        this.organizationAdmin.show(admin),
        this.issuerAdmin.show(admin),
      ]);
      return {
        settings,
        tag: jsonTag(settings),
        hasIssuers: this.issuerAdmin.isConfigured,
        exampleIssuer: issuerOfLabel(this.#baseUrl, 'your-label'),
        issuer: issuer && shownIssuer(issuer, this.#baseUrl),
      };
    });
  }
}

/**
 * Returns the facts of an issuer that the template shows, with the keys that the issuer publishes
 * now.
 */
function shownIssuer({ label, active, claimedAt, keys, now }: OrganizationIssuer, baseUrl: string) {
  const published = publishedKeys(keys, now);
  return {
    label,
    active,
    url: issuerOfLabel(baseUrl, label),
    claimed: moment(claimedAt),
    hasNextKey: published.some(({ state }) => state === 'next'),
    keys: published.map((key) => ({
      kid: key.kid,
      state: key.state,
      signsFrom: moment(key.signsFrom),
      publishedUntil: key.publishedUntil && moment(key.publishedUntil),
    })),
  };
}
