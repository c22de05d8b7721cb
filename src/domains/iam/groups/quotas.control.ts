import type { Handlers } from '#app.ts'
import { type Quotas as QuotasMessage, QuotasSchema, QuotasService } from '#gen/pinfold/control/quotas/v1/quotas_pb.ts'
import { messageOf } from '#lib/contract/messages.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { type Quotas, someQuotas } from './quotas.model.ts'
import * as service from './quotas.service.ts'

const toQuotas = messageOf(QuotasSchema)

export const organizationQuotas: Handlers<typeof QuotasService> = {
  async getQuotas(call, { organization }) {
    return toMessage(await service.getQuotas(call, organization))
  },

  async setQuotas(call, { organization, limits }) {
    const changes = limits.map(({ name, limit }) => {
      return { name, limit: limit === undefined ? undefined : Number(limit) }
    })
    return toMessage(await service.setQuotas(call, organization, changes))
  },
}

export const quotaEvents: readonly EventBody[] = [eventBody(QuotasService.method.setQuotas, someQuotas, toMessage)]

function toMessage({ organization, quotas }: Quotas): QuotasMessage {
  const shown = quotas.map((one) => ({ ...one, limit: Number.isFinite(one.limit) ? one.limit : undefined }))
  return toQuotas({ organization, quotas: shown })
}
