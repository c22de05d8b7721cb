import type { App } from '#app.ts'
import { isScannable } from '#domains/registry/images/scannable.service.ts'
import { attestedByTag } from '#domains/registry/tags/tags.model.ts'
import type { DomainHooks } from '#hooks.ts'
import { completeList, prepareList } from './lists/lists.service.ts'
import { queueAdvisories } from './own-advisories/own-advisories.service.ts'
import {
  forgetReports,
  forgetReportsOf,
  mayBeReport,
  queueAttestations,
  queuePushed,
} from './scan-reports/report-queue.service.ts'
import { deleteJobsOf, deleteJobsOfImage } from './scanners/scan-jobs.store.ts'
import { queueScans } from './scanners/scan-queue.service.ts'

export const scanningHooks = (app: App): DomainHooks => ({
  advisoriesChanged: queueAdvisories,

  async packagesRead(list, packages) {
    const prepared = await prepareList(app, list, packages)
    return (tx, organization, now) => completeList(tx, prepared, organization, now)
  },

  async manifestPushed(tx, by, repo, { digest, document, tags, isNew, sparse }) {
    const { mediaType, listed } = document
    const pushed = { digest, layers: listed.layers }
    if (isNew && !sparse && isScannable(document)) await queueScans(tx, by, repo, { digest, mediaType })
    if (mayBeReport(document)) await queuePushed(tx, by, repo, { ...document, ...pushed })
    for (const tag of tags) {
      const subject = attestedByTag(tag)
      if (subject !== undefined) await queueAttestations(tx, by, repo, { ...pushed, subject })
    }
  },

  async manifestDeleted(tx, repo, digest) {
    await forgetReportsOf(tx, repo, digest)
    await deleteJobsOfImage(tx, repo.id, digest)
  },

  async repoDeleting(tx, repo, limit) {
    const reports = await forgetReports(tx, repo, limit)
    return reports >= limit ? reports : reports + (await deleteJobsOf(tx, repo.id, limit - reports))
  },
})
