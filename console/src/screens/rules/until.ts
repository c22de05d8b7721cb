// Field for the expiry of an exemption or an accepted risk.
import { ruleWords } from '../../words/rules.ts'

/** `hint` shows the latest possible time. */
export const untilField = (hint: string) =>
  ({ name: 'expireTime', label: ruleWords.untilUtc, hint, type: 'datetime-local' }) as const

/** The browser's input has no time zone. The typed time is UTC. */
export const timeOf = (typed = '') => `${typed}:00Z`
