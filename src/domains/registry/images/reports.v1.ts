// Reports of scanners and ends of life, as a server answers that has none.

import type { Handlers } from '#app.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { sha256Pattern } from '#lib/digest.ts'
import { invalid, notFound } from '#lib/errors.ts'
import { readPage } from '#lib/lists/paging.ts'
import { isUid } from '#lib/uid.ts'
import { tagFields } from '../tags/tags.model.ts'
import { packageType, vulnReportType } from './images.model.ts'

export const reportsV1: Handlers<typeof Registry> = {
  async getVulnReport(_call, { digest }) {
    if (!sha256Pattern.test(digest)) {
      throw invalid({ field: 'digest', description: `digest must match "${sha256Pattern.source}"` })
    }
    throw notFound(vulnReportType, digest)
  },

  async listEolTags(call, { uidp, name, pageToken, pageSize, excludeDates, excludeEpochs }) {
    const asked = { pageSize: Number(pageSize), pageToken, orderBy: '', skip: 0 }
    readPage(call, asked, { fields: tagFields, defaultOrder: 'uid' }, [uidp, name, excludeDates, excludeEpochs])
    const { ancestorsOf: ancestors_of, descendantsOf: descendants_of, childrenOf: children_of } = uidp ?? {}
    for (const [member, uid] of Object.entries({ ancestors_of, descendants_of, children_of })) {
      if (uid && !isUid(uid)) throw invalid({ field: `uidp.${member}`, description: 'is not a uid' })
    }
    return { $typeName: 'pinfold.platform.registry.EolTagList', items: [], nextPageToken: '' }
  },

  async getPackageVersionMetadata(_call, { package: name }) {
    throw notFound(packageType, name)
  },
}
