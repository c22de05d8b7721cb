import type { Handlers } from '#app.ts'
import type { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { empty } from '#lib/wire.ts'
import { deleteRepo } from './deletions.service.ts'

export const deletionsV1: Handlers<typeof Registry> = {
  async deleteRepo(call, { id }) {
    await deleteRepo(call, id)
    return empty
  },
}
