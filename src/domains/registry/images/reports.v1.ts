// Reports of scanners, as a server answers that has none.

import type { Handlers } from '#app.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { sha256Pattern } from '#lib/digest.ts'
import { invalid, notFound } from '#lib/errors.ts'
import { vulnReportType } from './images.model.ts'

export const reportsV1: Handlers<typeof Registry> = {
  async getVulnReport(_call, { digest }) {
    if (!sha256Pattern.test(digest)) {
      throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
    }
    throw notFound(vulnReportType, digest)
  },
}
