// Field for the expiry of an exemption or an accepted risk.
import { words } from '../../words.ts'

/** `hint` has the latest time. */
export const untilField = (hint: string) =>
  ({ name: 'expireTime', label: words.untilUtc, hint, type: 'datetime-local' }) as const

/** The typed time is in UTC. */
export const timeOf = (typed = '') => `${typed}:00Z`
