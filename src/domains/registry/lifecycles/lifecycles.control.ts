import type { Handlers } from '#app.ts'
import type { ImportedProduct, LifecyclesService } from '#gen/pinfold/control/registry/v1/lifecycles_pb.ts'
import type { Product } from './lifecycles.model.ts'
import * as service from './lifecycles.service.ts'

export const lifecycles: Handlers<typeof LifecyclesService> = {
  async importLifecycles(call, { products }) {
    const counts = await service.importProducts(call, products.map(fromMessage))
    return { $typeName: 'pinfold.control.registry.v1.ImportLifecyclesResponse', ...counts }
  },
}

function fromMessage({ name, label, aliases, purls, releases }: ImportedProduct): Product {
  return { name, label, aliases, purls, releases: releases.map(({ $typeName: _, ...release }) => release) }
}
