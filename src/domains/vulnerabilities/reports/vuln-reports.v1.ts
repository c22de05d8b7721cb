// Reports of scanners, as a server answers that has none: what is asked for in a wrong way is named all the same.

import type { Handlers } from '#app.ts'
import type {
  VulnCountReportFilter,
  VulnCountReportList,
  Vulnerabilities,
} from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { isDigest } from '#lib/digest.ts'
import { invalid, notFound } from '#lib/errors.ts'
import { toIso } from '#lib/timestamp.ts'
import { isUid } from '#lib/uid.ts'

const vulnReportType = 'registry.pinfold.dev/VulnReport'

export const vulnReports: Handlers<typeof Vulnerabilities> = {
  async listVulnReports(_call, { repoId, digest }) {
    if (repoId === '' && digest === '')
      throw invalid({ field: 'repo_id', description: 'is required unless digest is given' })
    if (digest !== '') checkDigest(digest)
    else if (!isUid(repoId)) throw invalid({ field: 'repo_id', description: 'is not a uid' })
    return { $typeName: 'pinfold.platform.registry.VulnReportList', items: [] }
  },

  async getRawVulnReport(_call, { digest }) {
    checkDigest(digest)
    throw notFound(vulnReportType, digest)
  },

  listVulnCountReports: async (_call, filter) => countsOf(filter),
  listCumulativeVulnCountReports: async (_call, filter) => countsOf(filter),
}

function countsOf({ from, to }: VulnCountReportFilter): VulnCountReportList {
  if (from && to && toIso(to) < toIso(from)) throw invalid({ field: 'to', description: 'must not be before from' })
  return { $typeName: 'pinfold.platform.registry.VulnCountReportList', items: [] }
}

function checkDigest(digest: string): void {
  if (!isDigest(digest)) throw invalid({ field: 'digest', description: 'is not a digest' })
}
