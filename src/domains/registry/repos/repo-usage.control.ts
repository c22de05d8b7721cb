import type { Handlers } from '#app.ts'
import type { RepoUsageService } from '#gen/pinfold/control/registry/v1/repo_usage_pb.ts'
import { repoUsage } from './repo-usage.service.ts'

export const repoUsages: Handlers<typeof RepoUsageService> = {
  async getRepoUsage(call, { repoUid }) {
    const { manifests, blobs, bytes } = await repoUsage(call, repoUid)
    return {
      $typeName: 'pinfold.control.registry.v1.RepoUsage',
      repoUid,
      manifests: BigInt(manifests),
      blobs: BigInt(blobs),
      bytes: BigInt(bytes),
    }
  },
}
