// Shares of the thread's time. Among the waiting callers, the one that has used the least time goes first (start-time fair
// queueing).

/** Share of a caller, of an organization or of the background jobs. The members of an organization divide what it gets. */
export type Share = {
  /** Milliseconds used so far. Only the difference to others means something. */
  usedMs: number
  /** `usedMs` of the member that went last. */
  servedMs: number
}

/** Position of a caller among all others: the share of its organization, if it has one, and its own. */
export type Shares = readonly Share[]

/** Milliseconds that a share may be ahead of others after a pause, or behind after it had the thread alone. */
const mostAheadMs = 50

export const createShare = (): Share => ({ usedMs: 0, servedMs: 0 })

/** Requests whose sender is not known yet. They go first, since they use little, and their sender is charged later. */
export const arriving: Shares = [createShare()]
/** Work that no request waits for. */
export const background: Shares = [createShare()]

const whole = createShare()

/** Call it when a caller begins to wait. No caller saves up time for later, or pays long for time without others. */
export function keepNear(shares: Shares): void {
  let { servedMs } = whole
  for (const share of shares) {
    share.usedMs = Math.min(Math.max(share.usedMs, servedMs - mostAheadMs), servedMs + mostAheadMs)
    servedMs = share.servedMs
  }
}

/** Like `keepNear`, for a caller that already waits: no time is saved up, and a debt stays. */
export function liftBehind(shares: Shares): void {
  let { servedMs } = whole
  for (const share of shares) {
    share.usedMs = Math.max(share.usedMs, servedMs - mostAheadMs)
    servedMs = share.servedMs
  }
}

/** Negative if `a` goes before `b`, and 0 for the same caller. */
export function compareShares(a: Shares, b: Shares): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = a[i]!.usedMs - b[i]!.usedMs
    if (a[i] !== b[i] && difference !== 0) return difference
  }
  return 0
}

/** Records the shares that are served now. */
export function noteServed(shares: Shares): void {
  let over = whole
  for (const share of shares) {
    over.servedMs = Math.max(over.servedMs, share.usedMs)
    over = share
  }
}

/** True if the caller has used less time than those who take turns now, and so need not wait for one. */
export function isAhead(shares: Shares): boolean {
  keepNear(shares)
  return shares[0]!.usedMs < whole.servedMs
}

/** Like `isAhead`, for a caller that already waits, whose debt stays. */
export function isAheadInQueue(shares: Shares): boolean {
  liftBehind(shares)
  return shares[0]!.usedMs < whole.servedMs
}
