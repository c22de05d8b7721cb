import type { Handlers } from '#app.ts'
import { RepoUsageSchema, type RepoUsageService } from '#gen/pinfold/control/registry/v1/repo_usage_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { repoUsage } from './repo-usage.service.ts'

const toMessage = messageOf(RepoUsageSchema)

export const repoUsages: Handlers<typeof RepoUsageService> = {
  async getRepoUsage(call, { repoUid }) {
    return toMessage({ repoUid, ...(await repoUsage(call, repoUid)) })
  },
}
