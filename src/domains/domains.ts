import type { Domain } from '#domain.ts'
import { advisories } from '#domains/advisories/domain.ts'
import { events } from '#domains/events/domain.ts'
import { iam } from '#domains/iam/domain.ts'
import { ledger } from '#domains/ledger/domain.ts'
import { libraries } from '#domains/libraries/domain.ts'
import { mirrors } from '#domains/mirrors/domain.ts'
import { outbox } from '#domains/outbox/domain.ts'
import { ping } from '#domains/ping/domain.ts'
import { policy } from '#domains/policy/domain.ts'
import { registry } from '#domains/registry/domain.ts'
import { scanning } from '#domains/scanning/domain.ts'
import { search } from '#domains/search/domain.ts'
import { summaries } from '#domains/summaries/domain.ts'

/** Every domain, the lowest layer first: a domain imports only domains before it. A new domain is one line here. */
export const domains: readonly Domain[] = [
  outbox,
  iam,
  registry,
  events,
  ledger,
  advisories,
  scanning,
  policy,
  mirrors,
  libraries,
  search,
  summaries,
  ping,
]
