// Until when something holds that is made here, as somebody types it.
import { words } from '../../words.ts'

/** `hint` says how far ahead it may be. */
export const untilField = (hint: string) =>
  ({ name: 'expireTime', label: words.untilUtc, hint, type: 'datetime-local' }) as const

/** The typed time is in UTC. */
export const timeOf = (typed = '') => `${typed}:00Z`
