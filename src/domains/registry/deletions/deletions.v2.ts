import type { Handlers } from '#app.ts'
import type { ReposService } from '#gen/pinfold/registry/v2/repos_pb.ts'
import { empty } from '#lib/wire.ts'
import { deleteRepo } from './deletions.service.ts'

export const deletions: Handlers<typeof ReposService> = {
  async deleteRepo(call, { uid }) {
    await deleteRepo(call, uid)
    return empty
  },
}
