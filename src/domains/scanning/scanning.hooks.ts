import type { DomainHooks } from '#hooks.ts'
import { queueAdvisories } from './queue/queue.service.ts'

export const scanningHooks = (): DomainHooks => ({ advisoriesChanged: queueAdvisories })
