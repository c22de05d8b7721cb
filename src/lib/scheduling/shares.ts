// Used thread time of each caller. The waiting caller that has used the least time goes first (start-time fair queueing).

/**
 * Used time of a caller, of an organization, or of the background jobs. The time of an organization is divided among its members.
 */
export type Share = {
  /** Used milliseconds. They are meaningful only in comparison with other shares. */
  usedMs: number
  /** `usedMs` of the member that was served last. */
  servedMs: number
}

/** Shares of one caller, from the outside in: the share of the organization, if there is one, and the caller's own. */
export type Shares = readonly Share[]

/** Maximum advantage of a share after a pause, and maximum debt after it had the thread alone, in milliseconds. */
const mostAheadMs = 50

export const createShare = (): Share => ({ usedMs: 0, servedMs: 0 })

/**
 * Shares of requests whose sender is not known yet. Such requests go first, since they use little time. The sender is charged
 * later.
 */
export const arriving: Shares = [createShare()]
/** Shares of work that no request waits for. */
export const background: Shares = [createShare()]

const whole = createShare()

/** Limits the advantage and the debt of a caller. Call it when the caller begins to wait. */
export function keepNear(shares: Shares): void {
  let { servedMs } = whole
  for (const share of shares) {
    share.usedMs = Math.min(Math.max(share.usedMs, servedMs - mostAheadMs), servedMs + mostAheadMs)
    servedMs = share.servedMs
  }
}

/** Limits the advantage of a caller that already waits. Does not change a debt. */
export function liftBehind(shares: Shares): void {
  let { servedMs } = whole
  for (const share of shares) {
    share.usedMs = Math.max(share.usedMs, servedMs - mostAheadMs)
    servedMs = share.servedMs
  }
}

/** Compares two callers. Negative if `a` goes before `b`. 0 for the same caller, or for equal times. */
export function compareShares(a: Shares, b: Shares): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = a[i]!.usedMs - b[i]!.usedMs
    if (a[i] !== b[i] && difference !== 0) return difference
  }
  return 0
}

/** Records that this caller is served now. */
export function noteServed(shares: Shares): void {
  let over = whole
  for (const share of shares) {
    over.servedMs = Math.max(over.servedMs, share.usedMs)
    over = share
  }
}

/** True if the caller has used less time than the callers that are being served. Such a caller need not wait. */
export function isAhead(shares: Shares): boolean {
  keepNear(shares)
  return shares[0]!.usedMs < whole.servedMs
}

/** Like `isAhead`, for a caller that already waits. Does not change a debt. */
export function isAheadInQueue(shares: Shares): boolean {
  liftBehind(shares)
  return shares[0]!.usedMs < whole.servedMs
}
