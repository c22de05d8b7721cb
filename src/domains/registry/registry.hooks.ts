// Hooks of the iam domain that the registry domain implements.
import type { DomainHooks } from '#hooks.ts'
import { found } from '#lib/errors.ts'
import { forgetUsage, usageOf } from './blobs/usage.service.ts'
import { repoType } from './repos/repos.model.ts'
import { countRepos, findRepoRow, repoNames } from './repos/repos.store.ts'

export const registryHooks = (): DomainHooks => ({
  async resourceNames(reader, { organization, uids }) {
    const repos = await repoNames(
      reader,
      uids.filter((uid) => uid.startsWith(`${organization}/`)),
    )
    return repos.map((repo) => ({ ...repo, kind: 'repository' }))
  },

  groupDeleting: forgetUsage,

  async quotaUse(reader, organization) {
    const { bytes, uploadBytes, uploads } = await usageOf(reader, organization)
    return { bytes: bytes + uploadBytes, uploads, repositories: await countRepos(reader, organization) }
  },

  async requireRepos(reader, uids) {
    for (const uid of uids) found(await findRepoRow(reader, { uid }), repoType, uid)
  },
})
