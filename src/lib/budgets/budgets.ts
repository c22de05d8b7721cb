// Budgets of main-thread time for callers and organizations. A budget is a token bucket in milliseconds. It limits a caller only
// while other callers use the server too.
import { setTimeout as sleep } from 'node:timers/promises'
import { Newest } from '../caches/newest.ts'
import { AppError } from '../errors.ts'
import { networkOf } from '../net/source-address.ts'
import { arriving, createShare, type Share, type Shares } from '../scheduling/shares.ts'
import { rootOf } from '../uid.ts'
import type { TimeAccount } from './thread-time.ts'

export type BudgetOptions = {
  /** Percentage of the main thread that one identity or address may use over a long time. 100 means no limit. */
  callerPercent: number
  /** Percentage for all identities of one organization together. */
  organizationPercent: number
  /** Milliseconds that a caller may use in addition for a short time: the size of the bucket. */
  burstMs: number
}

/** Sender of a request. An empty `uid` is an anonymous caller, whose budget is that of the address. */
export type Sender = {
  uid: string
  source: string
  isExempt?: boolean
  /**
   * True if the request has no credential and may still be refused for that. Its time is charged to its address, which does not
   * count as waiting.
   */
  isUnproven?: boolean
}

export type Budgets = {
  /** Starts to record the time of a request. */
  open(): Spending
  /** Error with which a request of this sender would be refused now. Undefined if it would be accepted. Reserves no time. */
  problemOf(sender: Sender): OverBudget | undefined
  /**
   * Delays a refusal. Resolves after half a second, or when `signal` is aborted. So clients that ignore `Retry-After` send fewer
   * requests.
   */
  hold(signal: AbortSignal): Promise<void>
  /** Milliseconds that all requests have used so far. */
  spentMs(): number
}

/** Recorded time of one request. */
export type Spending = TimeAccount & {
  /**
   * Sets the sender of the request, whose budget the time is charged to. Returns an error if the sender is over budget while
   * others wait.
   */
  enter(sender: Sender): OverBudget | undefined
  /** Ends the request. If no sender was set, charges the time to the address `source`. */
  close(source: string): void
}

/** Error for a caller who is over budget while others wait. */
export class OverBudget extends AppError {
  constructor(retryDelaySeconds: number) {
    super(
      'RESOURCE_EXHAUSTED',
      'the caller has used more than its fair share of the server while other callers wait; retry later',
      {
        reason: 'RATE_LIMITED',
        details: [{ type: 'RetryInfo', retryDelaySeconds }],
      },
    )
  }
}

/** Milliseconds for which a caller counts as waiting after its last request. */
const recentMs = 1000
/** Number of turns of the event loop for which a caller counts as waiting, if that is longer. */
const recentTurns = 20
/** Longest time in milliseconds for which a caller with a request in progress counts as waiting. */
const longestMs = 30_000
/** Maximum debt of a budget, in milliseconds. */
const mostDebtMs = 10_000
/** Maximum number of accounts of each kind. An evicted account starts again with a full budget. */
const mostAccounts = 10_000
/** Maximum number of active accounts at each level, the latest ones. */
const mostActive = 1000
/** Milliseconds after which an account is moved to the end of its map again. Moving it at each request would take too long. */
const sameMs = 250
/** Delay of a refusal in milliseconds, and the maximum number of delayed refusals. */
const holdMs = 500
const mostHeld = 2000
/** Weight of the latest request in the expected time, if it was shorter than expected. A longer request has full weight. */
const weight = 0.1

type Level = 'caller' | 'organization'
type Account = Share & {
  readonly level: Level
  /** Milliseconds left in the budget. A negative number is a debt. */
  leftMs: number
  filledAt: number
  /** Milliseconds that requests in progress are expected to use. */
  reservedMs: number
  /** Time at which the account was last moved to the end of the map of its kind. */
  movedAt: number
  /** Time at which the account was last recorded as active. */
  activeAt: number
  /** Number of the event loop turn in which the account was last active. */
  activeInTurn: number
  inProgress: number
  /**
   * Milliseconds for which the next request is expected to use the thread without a break. An upload uses more in total, but with
   * breaks.
   */
  expectedMs: number
}

/** `turns` returns the number of turns of the event loop in which requests used the thread. */
export function createBudgets(
  options: BudgetOptions,
  monotonic: () => number,
  turns: () => number,
  most: number = mostAccounts,
): Budgets {
  const accounts = createAccounts(options, monotonic, turns, most)
  let spentMs = 0
  let held = 0
  const count = (ms: number): void => {
    spentMs += ms
  }
  return {
    open: () => new RequestSpending(accounts, count),
    problemOf: (sender) => accounts.look(sender).problem,
    async hold(signal) {
      if (held >= mostHeld) return
      held++
      await sleep(holdMs, undefined, { signal, ref: false }).catch(() => {})
      held--
    },
    spentMs: () => spentMs,
  }
}

type Accounts = ReturnType<typeof createAccounts>
type Active = Record<Level, Newest<Account, true>>

const hasLeft = (account: Account): boolean => account.leftMs > account.reservedMs

/**
 * Records that a sender is active, so that others are limited. For organizations, a sender without an organization counts as
 * another one.
 */
function note(active: Active, paying: readonly Account[], now: number, turn: number): void {
  const [caller, organization = caller] = paying as [Account, Account?]
  if (now - organization.activeAt > sameMs) active.organization.set(organization, true)
  if (now - caller.activeAt > sameMs) active.caller.set(caller, true)
  for (const account of paying) {
    if (now - account.activeAt > sameMs) account.activeAt = now
    account.activeInTurn = turn
  }
}

function createAccount(level: Level, leftMs: number, now: number): Account {
  const unused = { reservedMs: 0, activeAt: -Infinity, activeInTurn: 0, inProgress: 0, expectedMs: 0 }
  return { level, leftMs, filledAt: now, movedAt: now, ...unused, ...createShare() }
}

function createAccounts(
  { callerPercent, organizationPercent, burstMs }: BudgetOptions,
  monotonic: () => number,
  turns: () => number,
  most: number,
) {
  const shares: Record<Level, number> = { caller: callerPercent / 100, organization: organizationPercent / 100 }
  // Each kind has a map of its own, so that many new keys of one kind do not evict those of another.
  const kinds = {
    identity: new Newest<string, Account>(most),
    organization: new Newest<string, Account>(most),
    address: new Newest<string, Account>(most),
  }
  const active: Active = {
    caller: new Newest<Account, true>(mostActive),
    organization: new Newest<Account, true>(mostActive),
  }

  const find = (kind: keyof typeof kinds, key: string, now: number): Account => {
    const found = kinds[kind].get(key)
    if (found && now - found.movedAt <= sameMs) return found
    const account = found ?? createAccount(kind === 'organization' ? 'organization' : 'caller', burstMs, now)
    account.movedAt = now
    kinds[kind].set(key, account)
    return account
  }
  const atAddress = (source: string, now: number): Account => find('address', networkOf(source), now)
  const accountsOf = ({ uid, source }: Sender, now: number): readonly Account[] => {
    if (uid === '') return [atAddress(source, now)]
    const root = rootOf(uid)
    return root === uid ? [find('identity', uid, now)] : [find('identity', uid, now), find('organization', root, now)]
  }
  const haveOthers = (account: Account, { source }: Sender, now: number): boolean => {
    // The caller's own address does not count as another caller. Clients first send a request without a credential, to learn
    // where to get one.
    const own = kinds.address.get(networkOf(source))
    for (const other of active[account.level].keys()) {
      const limit = other.inProgress > 0 ? longestMs : recentMs
      const isPast = now - other.activeAt > limit && turns() - other.activeInTurn > recentTurns
      if (isPast) active[account.level].delete(other)
      else if (other !== account && other !== own) return true
    }
    return false
  }
  const refill = (account: Account, now: number): void => {
    account.leftMs = Math.min(burstMs, account.leftMs + (now - account.filledAt) * shares[account.level])
    account.filledAt = now
  }
  const isOver = (account: Account): boolean => !hasLeft(account) && shares[account.level] < 1
  const problemOf = (paying: readonly Account[], sender: Sender, now: number): OverBudget | undefined => {
    // Fast path: nearly all requests are within their budgets.
    if (paying.every(hasLeft)) return undefined
    const over = paying.filter((account) => isOver(account) && haveOthers(account, sender, now))
    if (over.length === 0) return undefined
    const waits = over.map(({ leftMs, reservedMs, level }) => (1 + reservedMs - leftMs) / shares[level])
    return new OverBudget(Math.max(1, Math.ceil(Math.max(...waits) / 1000)))
  }
  return {
    atAddress: (source: string) => atAddress(source, monotonic()),
    /** Accounts that a request of this sender is charged to, and the error if one of them is over budget. */
    look(sender: Sender): { paying: readonly Account[]; problem: OverBudget | undefined } {
      const now = monotonic()
      const paying = accountsOf(sender, now)
      for (const account of paying) refill(account, now)
      if (!sender.isUnproven) note(active, paying, now, turns())
      return { paying, problem: sender.isExempt ? undefined : problemOf(paying, sender, now) }
    },
    /** Charges time to accounts. While no other caller waits, a debt does not grow beyond the burst. */
    take(paying: readonly Account[], ms: number, sender: Sender): void {
      if (paying.length === 0) return
      const now = monotonic()
      for (const account of paying) {
        // Refills first: a full bucket does not grow, so refilling after the charge would give more time.
        refill(account, now)
        const before = account.leftMs
        account.leftMs = Math.max(-Math.max(mostDebtMs, burstMs), before - ms)
        account.usedMs += ms
        if (account.leftMs >= -burstMs || haveOthers(account, sender, now)) continue
        account.leftMs = Math.min(before, -burstMs)
      }
    },
  }
}

class RequestSpending implements Spending {
  readonly #accounts: Accounts
  readonly #count: (ms: number) => void
  #paying: readonly Account[] = []
  #shares: Shares = arriving
  #sender: Sender = { uid: '', source: '' }
  #spentMs = 0
  #longestMs = 0
  /** Reserved time that is not used yet, so that many simultaneous requests are not all admitted. */
  #reservedMs = 0
  #isAdmitted = false
  /** True if the request is included in `inProgress` of its accounts. */
  #isCounted = false

  constructor(accounts: Accounts, count: (ms: number) => void) {
    this.#accounts = accounts
    this.#count = count
  }

  get shares(): Shares {
    return this.#shares
  }

  charge(ms: number): void {
    this.#count(ms)
    this.#spentMs += ms
    if (ms > this.#longestMs) this.#longestMs = ms
    this.#accounts.take(this.#paying, ms, this.#sender)
    if (this.#reservedMs > 0) this.#reserve(Math.max(0, this.#reservedMs - ms))
  }

  enter(sender: Sender): OverBudget | undefined {
    this.#leave()
    this.#accounts.take(this.#paying, -this.#spentMs, this.#sender)
    const { paying, problem } = this.#accounts.look(sender)
    this.#paying = paying
    this.#shares = [...paying].reverse()
    this.#sender = sender
    this.#accounts.take(paying, this.#spentMs, sender)
    if (problem) return problem
    this.#isAdmitted = true
    this.#isCounted = !sender.isUnproven
    if (this.#isCounted) for (const account of paying) account.inProgress++
    this.#reserve(paying[0]!.expectedMs)
    return undefined
  }

  close(source: string): void {
    if (this.#paying.length === 0) {
      this.#paying = [this.#accounts.atAddress(source)]
      this.#sender = { uid: '', source }
      this.#accounts.take(this.#paying, this.#spentMs, this.#sender)
    }
    const [payer] = this.#paying as [Account]
    if (this.#isAdmitted) {
      payer.expectedMs = Math.max(this.#longestMs, payer.expectedMs + (this.#longestMs - payer.expectedMs) * weight)
    }
    this.#leave()
  }

  #reserve(ms: number): void {
    for (const account of this.#paying) account.reservedMs += ms - this.#reservedMs
    this.#reservedMs = ms
  }

  #leave(): void {
    this.#reserve(0)
    if (this.#isCounted) for (const account of this.#paying) account.inProgress--
    this.#isAdmitted = this.#isCounted = false
  }
}
