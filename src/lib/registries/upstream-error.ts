const explanations = {
  paced: 'it has been asked often enough for now',
  paused: 'it is left alone for a while, after what it answered',
  unauthorized: 'it wants another credential',
  forbidden: 'it refuses the credential',
  throttled: 'it has been asked too often',
  unavailable: 'it does not answer as it should',
  refused: 'it is at an address, or redirects to one, that may not be asked',
  'not-allowed': 'what may be followed there has been narrowed, and this path is not among it',
  guarded: 'a rule or a hold here keeps the tag as it is',
  malformed: 'its answer is not that of a registry',
  'too-large': 'its answer is too large',
  'wrong-digest': 'its answer does not have the digest that it was asked for',
}
export type UpstreamReason = keyof typeof explanations

/** Why a registry gave no answer that counts. Nothing in the message comes from it. */
export class UpstreamError extends Error {
  override name = 'UpstreamError'
  readonly reason: UpstreamReason
  /** How long to wait before asking again, where that is known. */
  readonly waitMs: number | undefined

  constructor(reason: UpstreamReason, more: { waitMs?: number | undefined; status?: number; cause?: unknown } = {}) {
    const { waitMs, status, cause } = more
    super(`${explanations[reason]}${status === undefined ? '' : ` (${status})`}`, { cause })
    this.reason = reason
    this.waitMs = waitMs
  }
}
