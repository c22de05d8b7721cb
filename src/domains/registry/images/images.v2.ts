import type { Handlers } from '#app.ts'
import type { ImagesService } from '#gen/pinfold/registry/v2/images_pb.ts'
import { defaultArchitecture } from './images.model.ts'
import * as service from './images.service.ts'

export const images: Handlers<typeof ImagesService> = {
  async getArchitectures(call, { repoUid, digest }) {
    const architectures = await service.getArchitectures(call, repoUid, digest)
    return { $typeName: 'pinfold.platform.registry.v2.Architectures', architectures }
  },

  async getSize(call, request) {
    const { repoUid, digest } = request
    const architecture = request.architecture || defaultArchitecture
    const size = await service.getSize(call, repoUid, digest, architecture)
    return { $typeName: 'pinfold.platform.registry.v2.Size', size: BigInt(size), architecture }
  },
}
