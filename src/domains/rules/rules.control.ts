// Common API handlers for all kinds of rules, and for all records that end.
import type { Call } from '#app.ts'
import { invalid } from '#lib/errors.ts'
import { listResponse } from '#lib/lists/lists.ts'
import { exceptionOrders, ruleOrders } from '#lib/lists/orders.ts'
import { type ListRules, type PageRequest, readPage } from '#lib/lists/paging.ts'
import { type Instant, timestamp, toIso } from '#lib/timestamp.ts'
import { createEnding, type EndingKind, endNow, getEnding, listEndings } from './endings.service.ts'
import type { DigestException, Ending, NewException, Rule } from './rules.model.ts'
import { createRule, deleteRule, getRule, listRules, type RuleKind, updateRule } from './rules.service.ts'

/**
 * API messages of one kind of rule. `field` is the name of the rule in requests, and `member` is the name of the list in
 * responses.
 */
type Wire<T, Input, Given, Shown, R extends string, K extends string> = {
  field: string
  fromMessage(message: Given): Input
  toMessage(one: T): Shown
  response: R
  member: K
  orders?: ListRules['fields']
}

type ListRequest = PageRequest & { scopeUid: string }

export function ruleHandlers<
  T extends Rule,
  Text extends object,
  M extends { uid: string },
  R extends string,
  K extends string,
>(
  kind: RuleKind<T, Text>,
  { field, fromMessage, toMessage, response, member, orders = ruleOrders }: Wire<T, Text, M, M, R, K>,
) {
  return {
    async create(call: Call, scope: string, message: M | undefined): Promise<M> {
      return toMessage(await createRule(kind, call, scope, fromMessage(required(field, message))))
    },
    async update(call: Call, given: M | undefined, mask: { paths: string[] } | undefined): Promise<M> {
      const message = required(field, given)
      const patch = { paths: mask?.paths ?? [], value: fromMessage(message) }
      return toMessage(await updateRule(kind, call, message.uid, patch))
    },
    async delete(call: Call, { uid }: { uid: string }) {
      await deleteRule(kind, call, uid)
      return { $typeName: 'google.protobuf.Empty' as const }
    },
    get: async (call: Call, { uid }: { uid: string }): Promise<M> => toMessage(await getRule(kind, call, uid)),
    async list(call: Call, request: ListRequest) {
      const page = readPage(call, request, { fields: orders, defaultOrder: 'uid' }, [request.scopeUid])
      return listResponse(response, member, await listRules(kind, call, page, request.scopeUid), toMessage, request)
    },
  }
}

export function endingHandlers<T extends Ending, Input, Given, M, R extends string, K extends string>(
  kind: EndingKind<T, Input>,
  { field, fromMessage, toMessage, response, member, orders = exceptionOrders }: Wire<T, Input, Given, M, R, K>,
) {
  return {
    async create(call: Call, scope: string, message: Given | undefined): Promise<M> {
      return toMessage(await createEnding(kind, call, scope, fromMessage(required(field, message))))
    },
    async end(call: Call, { uid, reason }: { uid: string; reason?: string }): Promise<M> {
      return toMessage(await endNow(kind, call, uid, reason))
    },
    get: async (call: Call, { uid }: { uid: string }): Promise<M> => toMessage(await getEnding(kind, call, uid)),
    async list(call: Call, request: ListRequest & { includeEnded: boolean }) {
      const { scopeUid: scope, includeEnded: withEnded } = request
      const page = readPage(call, request, { fields: orders, defaultOrder: 'uid' }, [scope, withEnded])
      return listResponse(
        response,
        member,
        await listEndings(kind, call, page, { scope, withEnded }),
        toMessage,
        request,
      )
    },
  }
}

function required<M>(field: string, message: M | undefined): M {
  if (!message) throw invalid({ field, description: 'is required' })
  return message
}

/** Time of a request as ISO text. Empty if the request has no time. */
export const isoOf = (time: Instant | undefined): string => (time ? toIso(time) : '')

export const exceptionFrom = (message: {
  digest: string
  reason: string
  expireTime?: Instant | undefined
}): NewException => ({
  ...{ digest: message.digest, reason: message.reason },
  expireTime: isoOf(message.expireTime),
})

export function exceptionFields({
  uid,
  digest,
  reason,
  expireTime,
  actor,
  endTime,
  endActor,
  createTime,
}: DigestException) {
  return {
    ...{ uid, digest, reason, actor, revokedBy: endActor },
    expireTime: timestamp(expireTime),
    ...(endTime === '' ? {} : { revokeTime: timestamp(endTime) }),
    ...endingTimes({ createTime, endTime }),
  }
}

export const endingTimes = ({ createTime, endTime }: Pick<Ending, 'createTime' | 'endTime'>) => ({
  createTime: timestamp(createTime),
  updateTime: timestamp(endTime || createTime),
})

export const ruleTimes = ({ createTime, updateTime }: Rule) => ({
  createTime: timestamp(createTime),
  updateTime: timestamp(updateTime),
})

/** Members of an API message about the end of a record that expires. */
export function endFields({ endTime, endActor, endReason = '', expireTime = '', createTime }: Ending) {
  return {
    expireTime: timestamp(expireTime),
    state: endTime === '' ? 'LIVE' : endTime === expireTime ? 'EXPIRED' : 'REVOKED',
    ...(endTime === '' ? {} : { endTime: timestamp(endTime) }),
    ...{ revokedBy: endActor, revokeReason: endReason },
    ...endingTimes({ createTime, endTime }),
  }
}
