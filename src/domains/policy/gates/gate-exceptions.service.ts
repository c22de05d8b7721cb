// What passes gates until a day, by its digest.
import type { Call } from '#app.ts'
import { emit } from '#domains/outbox/emit.ts'
import {
  type ExceptionKind,
  endExceptionNow,
  getExceptionOf,
  listExceptionsOf,
  makeException,
  type NewException,
} from '#domains/rules/exceptions.service.ts'
import type { Listed, Page } from '#lib/lists/paging.ts'
import {
  aGateException,
  type GateException,
  gateExceptionType,
  maxExceptionDays,
  maxReason,
  mostExceptions,
} from './gates.model.ts'
import * as store from './gates.store.ts'

const kind: ExceptionKind = {
  type: gateExceptionType,
  field: 'gate_exception',
  quota: 'exceptions from gates',
  limits: { days: maxExceptionDays, reason: maxReason, live: mostExceptions },
  store,
  created: (tx, call, { exception, group }) =>
    emit(tx, call, 'control.scanning.gate.exception.created', {
      ...{ subject: exception.uid, group },
      resource: aGateException(exception),
    }),
  revoked: (tx, call, { exception, group }) =>
    emit(tx, call, 'control.scanning.gate.exception.revoked', {
      ...{ subject: exception.uid, group },
      resource: aGateException(exception),
    }),
}

/** Throws NOT_FOUND for a place that is not there. */
export async function createException(call: Call, scope: string, input: NewException): Promise<GateException> {
  const exception = await makeException(kind, call, scope, input)
  call.log.info('gate exception created', { uid: exception.uid })
  return exception
}

/** Ends it now; one that has ended stays as it is. */
export async function revokeException(call: Call, uid: string): Promise<GateException> {
  return endExceptionNow(kind, call, uid)
}

export async function getException(call: Call, uid: string): Promise<GateException> {
  return getExceptionOf(kind, call, uid)
}

export async function listExceptions(
  call: Call,
  page: Page,
  wanted: { scope: string; withEnded: boolean },
): Promise<Listed<GateException>> {
  return listExceptionsOf(kind, call, page, wanted)
}
